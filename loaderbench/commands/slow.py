"""Progress lines on stderr for a step that takes longer than a user expects."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

FIRST_S, AGAIN_S = 2.0, 10.0


@contextmanager
def said_if_slow(what: str, *, first_s: float = FIRST_S, again_s: float = AGAIN_S) -> Iterator[None]:
    """Print a line if the body takes longer than `first_s`, and another one every `again_s`."""
    ended = Event()
    thread = Thread(target=_say_until, args=(ended, what, first_s, again_s), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _say_until(ended: Event, what: str, first_s: float, again_s: float) -> None:
    wait_s, elapsed_s = first_s, 0.0
    while not ended.wait(wait_s):
        elapsed_s += wait_s
        print(f"{what}: {elapsed_s:.0f} s so far; Ctrl-C stops", file=sys.stderr, flush=True)
        wait_s = again_s
