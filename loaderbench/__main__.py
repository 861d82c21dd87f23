"""`python -m loaderbench`, and the `loaderbench` command."""

import os
import signal
from types import FrameType

INTERRUPTED = 130  # 128 + SIGINT, as after an interrupt that comes later


def main() -> None:
    """Call the command line. Ctrl-C ends it in one line, even while it is imported."""
    usual = signal.getsignal(signal.SIGINT)
    if usual is signal.default_int_handler:  # a shell's background job ignores it
        signal.signal(signal.SIGINT, _end)
    from loaderbench.commands.app import main as call

    if usual is signal.default_int_handler:
        signal.signal(signal.SIGINT, usual)
    call()


def _end(_signal: int, _frame: FrameType | None) -> None:
    """End at once: an exception out of an import may become another one, and a second Ctrl-C would add a traceback."""
    os.write(2, b"loaderbench: interrupted\n")
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
