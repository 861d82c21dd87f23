"""Nothing that was measured is lost to a second Ctrl-C while it is written."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_ENDING = (signal.SIGINT, signal.SIGTERM)


def ignore_signals() -> None:
    """Let the result be written, which takes a second or two; `restored_signals` undoes it."""
    if threading.current_thread() is threading.main_thread():
        for number in _ENDING:
            signal.signal(number, signal.SIG_IGN)


@contextmanager
def restored_signals() -> Iterator[None]:
    """Leave the handlers as they were found."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
