"""What to type to measure something again: one change beside what it changes, or one configuration alone."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from loaderbench.records import Config, RunRecord, Scalar, format_scalar
from loaderbench.report import axes, words

_LONGEST = 400  # characters: a longer one nobody types, and a cut one does something else
_MOST_CHANGES = 3  # together they are measured in all combinations: eight configurations
_ROUNDS = 6


def command_for_change(run: RunRecord, change: Config, before: Config) -> str | None:
    """The command that measures the change beside what it changes; `None` where no sweep can show it."""
    changed = {axis: value for axis, value in change.items() if axes.key(before.get(axis)) != axes.key(value)}
    if run.kind == "profile" or not changed or len(changed) > _MOST_CHANGES:
        return None
    swept: dict[str, Sequence[Scalar]] = {axis: [value] for axis, value in before.items()}
    for axis, value in changed.items():
        old = [before[axis]] if axis in before else _set(run, axis)
        if not old:
            return None
        swept[axis] = [*old, value]
    return _command(run, swept, _ROUNDS)


def command_for_configuration(run: RunRecord, config: Config) -> str | None:
    """The command that runs one configuration once; `None` for a loop of the user's own."""
    if run.kind == "profile":
        return None
    return _command(run, {axis: [value] for axis, value in config.items()}, 1)


def _set(run: RunRecord, axis: str) -> list[Scalar]:
    """The value that the suite gives a loader argument or a dataset option, if it gives one."""
    for part in ("dataset", "loader"):
        found = run.suite.get(part)
        if isinstance(found, dict) and axis in found and isinstance(found[axis], str | int | float | None):
            return [found[axis]]
    return []


def _command(run: RunRecord, swept: Mapping[str, Sequence[Scalar]], rounds: int) -> str | None:
    values = (f"{axis}={','.join(map(format_scalar, found))}" for axis, found in swept.items())
    parts = ["loaderbench", "run", f"{run.name}.yaml", *(word for value in values for word in ("-P", value))]
    said = words.clean(" ".join(map(shlex.quote, [*parts, "--rounds", str(rounds), "--no-verify"])))
    return said if len(said) <= _LONGEST and "\n" not in said else None
