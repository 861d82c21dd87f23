"""The exceptions that have a meaning for whoever called; each carries the exit code that `commands/` returns."""


class LoaderbenchError(Exception):
    """A fault that one clear line explains: where it is and what to do.

    Raised for everything a user can fix. `exit_code` is that of its kind in docs/command-line.md.
    """

    exit_code = 70


class UsageError(LoaderbenchError):
    """The call is wrong: an argument, a flag, or a place that cannot be written to."""

    exit_code = 2


class SuiteError(UsageError):
    """A suite is wrong. The message reads `FILE:LINE:COL: key.path: what; did you mean ...?`."""


class RunFileError(UsageError):
    """A saved run cannot be read."""


class NoMeasurementError(LoaderbenchError):
    """Every trial failed, so that there is nothing to conclude from."""

    exit_code = 3


class GateFailedError(LoaderbenchError):
    """A gate of `--fail-if` failed: the whole interval lies beyond its limit."""

    exit_code = 1


class InconclusiveError(LoaderbenchError):
    """It was too noisy, or too little was measured, to say whether a gate of `--fail-if` was passed."""

    exit_code = 4


class MissingError(LoaderbenchError):
    """Something that the suite requires is not there: data, a package, an accelerator."""

    exit_code = 5


class Terminated(BaseException):
    """SIGTERM came; raised in the main thread, as `KeyboardInterrupt` is for Ctrl-C."""


class Interrupted(LoaderbenchError):  # noqa: N818 - an interruption is no error of anybody
    """A signal ended the run; what was measured is kept. `exit_code` is 128 + the signal's number."""

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number


def printable(text: str) -> str:
    """The text on one line: what is not printable is shown as `repr` shows it."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
