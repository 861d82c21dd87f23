"""The committed run that tests hand to trackers."""

from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "reports" / "examples" / "two-cores"
BEST = "batch_size=32,num_workers=2"
