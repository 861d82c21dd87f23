"""Lines on stderr that say who prints them: a training script shares the stream."""

from __future__ import annotations

import sys


def say(*lines: str) -> None:
    """Print each line, beginning with `loaderbench: `."""
    for line in lines:
        print(f"loaderbench: {line}", file=sys.stderr)
