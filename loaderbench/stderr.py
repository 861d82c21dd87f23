"""Lines on stderr that say who prints them: a training script shares the stream."""

from __future__ import annotations

import sys
from contextlib import suppress


def say(*lines: str) -> None:
    """Print each line, beginning with `loaderbench: `, if there is a stderr that can be written to."""
    stream = sys.stderr
    if stream is None:  # file descriptor 2 is closed; `print` would write to stdout instead
        return
    with suppress(Exception):  # the script may have replaced the stream by an object of its own
        for line in lines:
            print(f"loaderbench: {line}", file=stream)
