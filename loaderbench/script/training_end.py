"""Ends a script once its loader is tuned, even if the script catches the exit."""

from __future__ import annotations

from functools import cache
from typing import Any, NoReturn

from loaderbench.stderr import say


class TrainingEnd(SystemExit):
    """Ends the script with exit code 0."""

    def __init__(self) -> None:
        super().__init__(0)


class EndedBatches:
    """An iterator that raises `TrainingEnd` for every batch."""

    def __iter__(self) -> EndedBatches:
        return self

    def __next__(self) -> Any:
        end_again()


def end_again() -> NoReturn:
    """Raise `TrainingEnd` in a script that has caught it, for example with a bare `except`."""
    _say_why()
    raise TrainingEnd


@cache
def _say_why() -> None:
    say("the script continues after the exit that follows tuning; its loaders give no more batches")
