"""`python -m loaderbench`, and the `loaderbench` command."""

import sys

INTERRUPTED = 130  # 128 + SIGINT, as after an interrupt that comes later


def main() -> None:
    """Call the command line. Ctrl-C ends it in one line, even while it is imported."""
    try:
        from loaderbench.commands.app import main as call
    except KeyboardInterrupt:
        print("loaderbench: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
    call()


if __name__ == "__main__":
    main()
