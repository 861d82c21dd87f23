"""The exceptions a caller may handle; each carries the exit code that `commands/` returns."""


class LoaderbenchError(Exception):
    """An error that a user can fix; the message is one line: what is wrong, where, and the fix.

    `exit_code` is that of its kind in docs/reference/exit-codes.md.
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
    """Too noisy, or too little was measured, to decide a gate of `--fail-if`."""

    exit_code = 4


class MissingError(LoaderbenchError):
    """Something that the suite requires is missing: data, a package, a GPU."""

    exit_code = 5


class BadImageError(Exception):
    """An image that cannot be decoded, raised while a dataset loads; the message begins with its path.

    It has no exit code: a run records it as a failed trial.
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
    """The text on one line: what is not printable is shown as `repr` shows it."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
