"""Commands that measure a change against its starting configuration, or one configuration, again."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from loaderbench.loaders import LOADER_BACKENDS, own_arguments
from loaderbench.records import Config, RunRecord, Scalar, as_yaml
from loaderbench.report import axes, words

_LONGEST = 400  # characters; a longer command is omitted, because a truncated one would do something else
_MOST_CHANGES = 3  # measured in all combinations: eight configurations
_ROUNDS = 6
_PLAIN_FILE = re.compile(r"(?!-)[^\x00-\x1f\ud800-\udfff]+")


def command_for_change(run: RunRecord, change: Config, before: Config) -> str | None:
    """The command that measures a change against its starting configuration; `None` if no sweep can measure it."""
    changed = {axis: value for axis, value in change.items() if axes.key(before.get(axis)) != axes.key(value)}
    if run.kind == "profile" or not changed or len(changed) > _MOST_CHANGES:
        return None
    own, new = _accepted(run, before), _accepted(run, {**before, **change})
    swept: dict[str, Sequence[Scalar]] = {axis: [value] for axis, value in own.items()}
    for axis, value in changed.items():
        old = [before[axis]] if axis in before else _suite_values(run, axis)
        if not old:
            return None
        swept[axis] = [*(old if axis in own or axis not in before else []), *([value] if axis in new else [])]
    return _command(run, {axis: values for axis, values in swept.items() if values}, _ROUNDS)


def command_for_configuration(run: RunRecord, config: Config) -> str | None:
    """The command that runs one configuration once; `None` for a user's own loop."""
    if run.kind == "profile":
        return None
    return _command(run, {axis: [value] for axis, value in _accepted(run, config).items()}, 1)


def command_to_resume(run: RunRecord, folder: Path | None) -> str | None:
    """The command that continues an unfinished run in its folder; `None` if suite or folder are unknown."""
    if folder is None or not _PLAIN_FILE.fullmatch(run.suite_file):
        return None
    command = shlex.join(["loaderbench", "run", run.suite_file, "--resume", str(folder)])
    return command if words.clean(command) == command and len(command) <= _LONGEST else None


def _accepted(run: RunRecord, config: Config) -> Config:
    """The configuration without null arguments that only other loaders accept."""
    own = own_arguments({**run.loader, **config}, LOADER_BACKENDS.values())
    return {axis: value for axis, value in config.items() if value is not None or axis in own}


def _suite_values(run: RunRecord, axis: str) -> list[Scalar]:
    """The suite's value for a loader argument or dataset option, if it sets one."""
    for part in ("dataset", "loader"):
        section = run.section(part)
        if axis in section and isinstance(section[axis], str | int | float | None):
            return [section[axis]]
    return []


def _data(run: RunRecord) -> list[str]:
    """`--data DIR`, if the folder is absolute and no axis. A relative one is relative to the suite's file."""
    root = run.section("dataset").get("root")
    if not isinstance(root, str) or not Path(root).is_absolute() or "root" in run.plan.axes:
        return []
    return ["--data", root]


def _command(run: RunRecord, swept: Mapping[str, Sequence[Scalar]], rounds: int) -> str | None:
    file = run.suite_file or f"{run.name}.yaml"
    if not _PLAIN_FILE.fullmatch(file) or run.is_of_script:
        return None
    values = (f"{axis}={','.join(map(as_yaml, found))}" for axis, found in swept.items())
    parts = ["loaderbench", "run", file, *_data(run), *(word for value in values for word in ("-P", value))]
    command = words.clean(" ".join(map(shlex.quote, [*parts, "--rounds", str(rounds), "--no-verify"])))
    return command if len(command) <= _LONGEST and "\n" not in command else None
