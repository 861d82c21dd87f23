"""The runs of `tests/recorded`, concluded by today's rules."""

from __future__ import annotations

import functools
import gzip
import tempfile
from pathlib import Path

from loaderbench.conclusion import conclude
from loaderbench.records import RunRecord
from loaderbench.store import RUN_FILE, read_run

RECORDED = Path(__file__).parents[1] / "recorded"
NAMES = sorted(path.name.removesuffix(".json.gz") for path in RECORDED.glob("*.json.gz"))


@functools.cache
def recorded(name: str) -> RunRecord:
    """One of them."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / RUN_FILE
        file.write_bytes(gzip.decompress((RECORDED / f"{name}.json.gz").read_bytes()))
        return conclude(read_run(file.parent))
