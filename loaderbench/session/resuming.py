"""Resumes a run that was interrupted or killed, provided that nothing relevant has changed since."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from loaderbench.consumers import demand_rate
from loaderbench.errors import UsageError
from loaderbench.plan import Plan
from loaderbench.records import Config, Environment, Measured, Readings, RunRecord, Trial, to_dict
from loaderbench.store import RUN_FILE, read_run, readable_timeline, readable_trials
from loaderbench.store.parquet import note_without_parquet
from loaderbench.suite import Override
from loaderbench.targets import file_of

_IGNORED_KEYS = {("measure", "budget"), ("measure", "verify"), ("measure", "timeout_s"), ("consumer", "demand")}
"""Suite keys that do not affect trials. The demand is compared after it is resolved, as earlier versions saved it."""

_PACKAGES = ("torch", "torchvision", "pillow", "numpy")


@dataclass(frozen=True)
class Earlier:
    """What an earlier call left: the record of the run, and by id the sweep trials that are not repeated.

    `unreadable` has one line for each file that cannot be read, or not entirely.
    """

    folder: Path
    record: RunRecord
    trials: dict[str, Trial]
    readings: Readings
    unreadable: tuple[str, ...] = ()


def read_earlier(folder: Path) -> Earlier:
    """Read the run to resume. Trials of fixes are measured again, because a round needs both trials of a pair.

    Raises `UsageError` or `RunFileError`, with a one-line message.
    """
    folder = folder.parent if folder.name == RUN_FILE else folder
    if not folder.is_dir():
        raise UsageError(f"--resume {folder}: no such run folder")
    record = read_run(folder)
    if record.complete:
        raise UsageError(f"--resume {folder}: that run is complete; nothing is left to measure")
    if record.kind == "ab":
        raise UsageError(f"--resume {folder}: a comparison of two versions cannot be resumed; run ab again")
    if record.kind == "profile":
        raise UsageError(f"--resume {folder}: a profile cannot be resumed; run the training script again")
    saved, damaged = readable_trials(folder)
    kept = {trial.id: trial for trial in _not_repeated(record, _with_those_of(record, saved))}
    readings, unreadable = readable_timeline(folder)
    measured_again = (f"{line}; what only that file had is measured again" for line in damaged)
    return Earlier(folder, record, kept, readings.only(kept), (*measured_again, *unreadable))


def _with_those_of(record: RunRecord, saved: Sequence[Trial]) -> list[Trial]:
    """The trials of `trials.jsonl`, plus those found only in `run.json`: a line can be damaged or lost."""
    known = {trial.id for trial in saved}
    return [*saved, *(trial for trial in record.trials if trial.id not in known)]


def _not_repeated(record: RunRecord, trials: Sequence[Trial]) -> Iterator[Trial]:
    """Completed trials of the sweep. Failed ones are repeated, unless an adaptive sweep already used their result."""
    of_sweep = [trial for trial in trials if trial.role in ("sweep", "twin")]
    is_adaptive = record.section("measure").get("strategy") == "adaptive"
    last = max((trial.round for trial in of_sweep), default=0)
    for trial in of_sweep:
        if trial.status == "completed" or (is_adaptive and trial.round < last):
            yield trial


def overrides_of(folder: Path | None) -> list[Override]:
    """The overrides set by the flags of the earlier call; empty without one. Raises the errors of `read_earlier`."""
    kept = read_earlier(folder).record.overrides if folder is not None else {}
    return [Override(tuple(key.split(".", 1)), value, f"--resume {folder}: {key}") for key, value in kept.items()]


def refuse_another_suite(earlier: Earlier, suite: Mapping[str, Any]) -> None:
    """Raise `UsageError` if the suite has changed. This check does not prepare data or probe the machine."""
    _refuse(earlier, [*_suites(earlier.record.suite, suite)])


def refuse_changes(earlier: Earlier, now: Measured) -> None:
    """Raise `UsageError` if anything else has changed: trials under different conditions cannot form one run."""
    then = earlier.record
    changed = [
        *_demands(demand_rate(then), demand_rate(now)),
        *_machines(then.environment, now.environment),
        *_differences("dataset", to_dict(then.dataset), to_dict(now.dataset), ("description", "files", "classes")),
        *_folders(then.dataset.root, now.dataset.root),
        *_plans(then.plan.configs, now.plan.configs),
    ]
    _refuse(earlier, changed)


def _refuse(earlier: Earlier, changed: Sequence[str]) -> None:
    if changed:
        more = f" (and {len(changed) - 1} more)" if len(changed) > 1 else ""
        raise UsageError(f"--resume {earlier.folder}: {changed[0]}{more}; start a new run")


def changed_code(earlier: Earlier, names: Sequence[str], folder: Path) -> str:
    """One line naming a target's file that is newer than kept trials; empty if there is none.

    Newer code is not an error: a failed trial can be the reason why the code was changed.
    """
    began = [datetime.fromisoformat(trial.started_at) for trial in earlier.trials.values() if trial.started_at]
    for file in filter(None, (file_of(name, folder) for name in names)):
        changed = datetime.fromtimestamp(file.stat().st_mtime, tz=timezone.utc)
        if older := sum(at < changed for at in began):
            kept = f"{older} of {len(began)} kept trials"
            name = file.relative_to(folder) if file.is_relative_to(folder) else file
            return f"{name} changed after {kept}, which measured the earlier code; start a new run to repeat them"
    return ""


def lost_readings(earlier: Earlier) -> str:
    """How many kept trials have neither timeline nor batches, in one line; empty if none, or if none could be saved.

    Readings are in memory until a call ends. If a file of readings cannot be read, its error is returned instead.
    """
    if earlier.unreadable:
        return "; ".join(earlier.unreadable)
    saved = earlier.readings
    done = [name for name, trial in earlier.trials.items() if trial.status == "completed"]
    lost = sum(not saved.of(name) and name not in saved.batches for name in done)
    if not lost or note_without_parquet():
        return ""
    return f"{lost} of {len(done)} kept trials have no timeline and no batches: an earlier call was killed"


def mixed_round(earlier: Earlier, plan: Plan) -> str:
    """One line if two calls measured the last planned round of a grid; else empty."""
    kept = Counter(one.round for one in earlier.trials.values() if one.role == "sweep" and one.round <= plan.rounds)
    last = max(kept, default=0)
    if plan.is_adaptive or kept[last] in (0, len(plan.configurations)):
        return ""
    return f"round {last} has trials of two calls, between which the machine's speed can have changed"


def _suites(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Each suite key whose value has changed."""
    for section in sorted(before.keys() | now.keys()):
        then, today = before.get(section), now.get(section)
        if isinstance(then, dict) and isinstance(today, dict):
            keys = [key for key in sorted(then.keys() | today.keys()) if (section, key) not in _IGNORED_KEYS]
            yield from _differences(section, then, today, keys)
        elif then != today:
            yield _changed(section, then, today)


def _demands(before: float | None, now: float | None) -> Iterator[str]:
    """A changed target rate: the same suite resolves to another rate after a published rate was corrected."""
    if before != now:
        yield _changed("target in samples/s", before, now)


def _folders(before: str | None, now: str | None) -> Iterator[str]:
    """A changed image folder, if both are known: one relative path can name two folders."""
    if before is not None and now is not None and before != now:
        yield f"image folder changed from {before} to {now}"


def _plans(before: Sequence[Config], now: Sequence[Config]) -> Iterator[str]:
    """Changed configurations: `auto` depends on the installed packages and on the version of loaderbench."""
    if [*before] != [*now]:
        yield f"configs differ ({len(before)} then, {len(now)} now): auto resolved to other values"


def _machines(before: Environment, now: Environment) -> Iterator[str]:
    yield from _differences("machine", to_dict(before), to_dict(now), ("cpu_model", "cpus_allotted", "python"))
    then, today = ([gpu.uuid for gpu in env.gpus] for env in (before, now))
    if then != today:
        yield _changed("machine.gpus", then, today)
    yield from _differences("version of", before.versions, now.versions, _PACKAGES, joint=" ")


def _differences(
    name: str, before: dict[str, Any], now: dict[str, Any], keys: Any, *, joint: str = "."
) -> Iterator[str]:
    for key in keys:
        if before.get(key) != now.get(key):
            yield _changed(f"{name}{joint}{key}", before.get(key), now.get(key))


def _changed(name: str, before: Any, now: Any) -> str:
    return f"{name} changed from {_short(before)} to {_short(now)}"


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."
