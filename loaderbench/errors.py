"""Exceptions that callers can handle; each carries the exit code that `commands/` returns."""


class LoaderbenchError(Exception):
    """An error that a user can fix. Its one-line message says what is wrong, where, and the fix.

    `exit_code` is documented in docs/reference/exit-codes.md.
    """

    exit_code = 70


class UsageError(LoaderbenchError):
    """Wrong usage: an argument, a flag, or a file that cannot be written."""

    exit_code = 2


class SuiteError(UsageError):
    """Invalid suite. The message reads `FILE:LINE:COL: key.path: what; did you mean ...?`."""


class RunFileError(UsageError):
    """A saved run cannot be read."""


class NoMeasurementError(LoaderbenchError):
    """Every trial failed: there is nothing to conclude from."""

    exit_code = 3


class GateFailedError(LoaderbenchError):
    """A gate of `--fail-if` failed, its whole interval beyond the threshold; or a check of `doctor --gpu` did."""

    exit_code = 1


class InconclusiveError(LoaderbenchError):
    """A gate of `--fail-if` cannot be decided: too noisy, or too little was measured."""

    exit_code = 4


class MissingError(LoaderbenchError):
    """Something that the suite requires is missing: data, a package, a GPU.

    `value` is the value in the suite that asks for it, as written there; `None` if unknown.
    """

    exit_code = 5

    def __init__(self, message: str, value: str | None = None) -> None:
        super().__init__(message)
        self.value = value


class BadImageError(Exception):
    """An image that cannot be decoded, raised while a dataset loads. The message begins with the image's path.

    The exception has no exit code: a run records it as a failed trial.
    """


class Terminated(BaseException):
    """SIGTERM was received; raised in the main thread, like `KeyboardInterrupt` for Ctrl-C."""


class Interrupted(LoaderbenchError):  # noqa: N818 - an interruption is not an error
    """A signal stopped a command; results so far are kept. `exit_code` is 128 + the signal's number.

    `loaderbench.run` raises `KeyboardInterrupt` instead.
    """

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number


def printable(text: str) -> str:
    """The text on one line, with unprintable characters escaped as in `repr`."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
