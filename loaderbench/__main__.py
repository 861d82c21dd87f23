"""`python -m loaderbench`, and the `loaderbench` command."""

import os
import signal
from types import FrameType

INTERRUPTED = 130  # 128 + SIGINT, as after a later interrupt


def main() -> None:
    """Run the command line. Ctrl-C prints a single line, even during imports."""
    usual = signal.getsignal(signal.SIGINT)
    if usual is signal.default_int_handler:  # a shell's background job ignores SIGINT
        signal.signal(signal.SIGINT, _end)
    from loaderbench.commands.app import main as call

    if usual is signal.default_int_handler:
        signal.signal(signal.SIGINT, usual)
    call()


def _end(_signal: int, _frame: FrameType | None) -> None:
    """Exit immediately: an import could convert an exception, and a second Ctrl-C would add a traceback."""
    os.write(2, b"loaderbench: interrupted\n")
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
