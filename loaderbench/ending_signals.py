"""Defer signals, so a second Ctrl-C cannot lose results while they are written."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_ENDING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


def put_off_signals(came: list[int]) -> None:
    """Defer signals while the result is written, and record them in `came`, SIGHUP as SIGTERM.

    Ignored signals stay ignored. `restored_signals` restores the handlers.
    """
    if threading.current_thread() is threading.main_thread():
        for number in _ENDING:
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, lambda n, _: came.append(n if n == signal.SIGINT else signal.SIGTERM))


@contextmanager
def restored_signals() -> Iterator[None]:
    """Restore the signal handlers at the end of the block."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def signals_put_off() -> Iterator[None]:
    """Finish this block even if signals arrive."""
    with restored_signals():
        put_off_signals([])
        yield
