"""Nothing that was measured is lost to a second Ctrl-C while it is written."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_ENDING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


def put_off_signals(came: list[int]) -> None:
    """Let the result be written, which takes a second or two; what comes meanwhile is noted in `came`.

    What is ignored stays so. `restored_signals` undoes it.
    """
    if threading.current_thread() is threading.main_thread():
        for number in _ENDING:
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, lambda signal_number, _: came.append(signal_number))


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


@contextmanager
def signals_put_off() -> Iterator[None]:
    """Finish this block, whatever comes meanwhile."""
    with restored_signals():
        put_off_signals([])
        yield
