"""Runs that were recorded with schema 1, and what was concluded from them then.

Each `recorded/<name>.json.gz` is the `run.json` of a run, with its paths replaced: a scenario of `benchmarks/diagnosis`
(`scenario_`), a run or a profile that a test makes (`run_`, `profile_`), the committed example, or one that was made up
(`synthetic_`). The code that wrote it concluded it once more from its measurements; today's code must say the same.
Sentences are compared by their figures, everything else to the letter.
"""

from __future__ import annotations

import gzip
import json
import math
import re
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from command_line import Cli
from recorded_differences import (
    CORRECTED,
    CORRECTED_CODE,
    DECIDED_AGAIN,
    EXCLUDED,
    OTHER_PROGRAMS,
    REWORDED,
)
from schema_1 import as_schema_1

from loaderbench.conclusion import conclude
from loaderbench.diagnosis.wording import in_percent, in_seconds
from loaderbench.records import Interval, RunRecord, config_label
from loaderbench.remedies.base import AS_FAST, MAY_NOT_REPEAT
from loaderbench.statistics.configurations import rounds_of_both
from loaderbench.statistics.intervals import at_another_time, excludes_one, sd_between_times, times
from loaderbench.store import RUN_FILE, read_run

RECORDED = Path(__file__).parent / "recorded"
NAMES = sorted(path.name.removesuffix(".json.gz") for path in RECORDED.glob("*.json.gz"))
SHOWN = 40  # differences in one message

CONCLUDED = (
    "configurations",
    "best",
    "baseline",
    "ceiling",
    "ladder",
    "contention",
    "epoch_costs",
    "verdict",
    "recommendations",
    "overhead",
    "noise",
    "warnings",
    "notes",
    "not_measured",
    "verification",
)
MEASURED_WITHIN = {"ladder": "trials", "verification": "trials", "noise": "aa_trials"}
"""Conclusions that hold whole trials, which are compared by their ids."""

FOUND: set[tuple[str, str | None, str | None]] = {
    ("compute", None, "none"),
    ("input", "collate", "oversubscription"),
    ("input", "collate", "workers"),
    ("input", "decode", "cpu"),
    ("input", "decode", "memory"),
    ("input", "decode", "quota"),
    ("input", "decode", "workers"),
    ("input", "main_process", "lock"),
    ("input", "main_process", "workers"),
    ("input", "read", "storage_bandwidth"),
    ("input", "read", "storage_latency"),
    ("input", "sample", "memory"),
    ("input", "sample", "quota"),
    ("input", "sample", "workers"),
    ("input", "startup", "startup"),
    ("input", "stragglers", "order"),
    ("input", "transform", "oversubscription"),
    ("input", "transform", "workers"),
    ("input", "transport", "lock"),
    ("input", "transport", "memory"),
    ("transfer", None, None),
    ("unknown", None, None),
}
"""Bound, stage and limit of the recordings: none may be lost."""


_PAIRS = "Interleaved pairs: "
_AGAINST = ("verdict.against: ", "verdict: figures that are gone: ")


HELD_BY_NEIGHBORS = {
    "scenario_collate_w1": "collate",
    "scenario_collate_w2": "collate",
    "scenario_decode_v2_w2": "decode",
    "scenario_decode_w0": "decode",
    "scenario_decode_w8": "decode",
    "scenario_lock_between_workers_w2": "sample",
    "scenario_main_generator": "main_process",
    "scenario_main_sampler_w2": "main_process",
    "scenario_run_decode_w0": "decode",
    "scenario_sample_numpy_w2": "sample",
    "scenario_sample_stream_w1": "sample",
    "scenario_transform_v1_blur_w0": "transform",
    "scenario_transport_tiny_w2": "transport",
}
"""The stage that was planted, where other programs held the CPUs. The verdict was unknown. Now it names bound and
stage, and fixes of that stage are listed."""
_OPEN = ("verdict.bound: ", "verdict.stage: ", "verdict.limit: ", "verdict.not_measured.", "recommendations")


LATER_FIXES = {"dali_loader", "process_loader", "region_decode", "thread_loader"}
"""Fixes that were not in the catalog when the runs were recorded."""

PROSE = ("headline", "evidence", "against", "why_this_one", "basis", "title", "costs", "caveat", "reason", "notes",
         "warnings", "ended")  # fmt: skip
"""Fields that hold sentences. They may be reworded, but no figure may be lost or changed."""

_FIGURE = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")
_COMMENT = re.compile(r'\s*#[^\n]*|\s*""".*?"""|raise \w+\([^\n]*', re.DOTALL)
"""Parts of a program that may be reworded: comments, docstrings, error messages."""


def recording(name: str) -> dict[str, Any]:
    """The `run.json` of a recording."""
    with gzip.open(RECORDED / f"{name}.json.gz", "rt", encoding="utf-8") as lines:
        return dict(json.load(lines))


def put(name: str, folder: Path) -> Path:
    """A run folder that holds a recording."""
    folder.mkdir(parents=True)
    (folder / RUN_FILE).write_bytes(gzip.decompress((RECORDED / f"{name}.json.gz").read_bytes()))
    return folder


def _corrected(fix: dict[str, Any]) -> dict[str, Any]:
    code = fix["snippet"]
    if fix["id"] in OTHER_PROGRAMS:
        return {**fix, "snippet": bool(code)}  # another program, where there was one
    for wrong, right in CORRECTED_CODE.items() if code else ():
        code = code.replace(wrong, right)
    return {**fix, "snippet": code}


def _with_later_gains(fix: dict[str, Any], run: RunRecord) -> dict[str, Any]:
    """Intervals of gains were those of their rounds alone when recorded, and the evidence did not repeat them."""
    gain = fix["gain"]
    if gain is None:
        return fix
    own = [trial for trial in run.trials if trial.id in fix["trials"]]
    one, other = {config_label(trial.config): trial.config for trial in own}.values()
    ratio = Interval(gain["est"], gain["lo"], gain["hi"])
    later = at_another_time(ratio, rounds_of_both(one, other, own), sd_between_times(run.trials))
    average = f"; {times(ratio)} on average in this run"
    said = [line + average * line.startswith(_PAIRS) for line in fix["evidence"]]
    if fix["status"] == "open" and fix["caveat"] != AS_FAST and not excludes_one(later):
        of_pairs = [at for at, line in enumerate(said) if line.startswith(_PAIRS)]
        said.insert(of_pairs[0] + 1 if of_pairs else len(said), MAY_NOT_REPEAT)
    return {**fix, "gain": {**gain, "lo": later.lo, "hi": later.hi}, "evidence": said}


def conclusions_of(run: dict[str, Any]) -> dict[str, Any]:
    """What was concluded, out of a `run.json` of schema 1."""
    found = {part: run[part] for part in CONCLUDED}
    found["recommendations"] = [_corrected(fix) for fix in found["recommendations"] if fix["id"] not in LATER_FIXES]
    for part, trials in MEASURED_WITHIN.items():
        if found[part] is not None:
            found[part] = {**found[part], trials: [trial["id"] for trial in found[part][trials]]}
    return found


def _starts(costs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [cost for cost in costs if cost["name"] == "first_batch"]


def _without_starts(lines: Iterable[str], recorded: dict[str, Any]) -> Iterator[str]:
    """Without what follows from the time before the first batch: it included the training step of a batch."""
    starts = _starts(recorded["epoch_costs"])
    said = [f"{in_seconds(cost['s_per_epoch'])} {in_percent(cost['share'] or 0.0)}" for cost in starts]
    known = {found.replace(",", "") for text in said for found in _FIGURE.findall(text)}
    for line in lines:
        place, is_figures, gone = line.partition(": figures that are gone: ")
        left = [figure for figure in gone.split(", ") if figure not in known]
        if is_figures and left:
            yield f"{place}{is_figures}{', '.join(left)}"
        elif not is_figures and not re.match(r"epoch_costs\.\d+\.(s_per_epoch|share): ", line):
            yield line


SCIPY = tuple(map(int, version("scipy").split(".")[:2]))
TOLERANCE = 1e-12 if SCIPY >= (1, 16) else 1e-7
"""SciPy 1.15, for Python 3.10, has other last digits of Student's t, which weigh more in intervals near zero."""


def differences(recorded: Any, today: Any, place: str = "") -> Iterator[str]:
    """A line per field that differs, by its dotted path; of the sentences of a record, per figure that is gone."""
    if isinstance(recorded, dict) and isinstance(today, dict):
        yield from _of_record(recorded, today, place)
    elif isinstance(recorded, list) and isinstance(today, list):
        if len(recorded) != len(today):
            yield f"{place}: recorded {len(recorded)} of them, now {len(today)}"
        for number, (one, other) in enumerate(zip(recorded, today, strict=False)):
            yield from differences(one, other, f"{place}.{number}")
    elif not _same(recorded, today):
        yield f"{place}: recorded {_short(recorded)}, now {_short(today)}"


def _of_record(recorded: dict[str, Any], today: dict[str, Any], place: str) -> Iterator[str]:
    if gone := sorted(figures(recorded) - figures(today)):
        yield f"{place}: figures that are gone: {', '.join(gone)}"
    for name in [*recorded, *(name for name in today if name not in recorded)]:
        where = f"{place}.{name}" if place else name
        if name not in today:
            yield f"{where}: recorded {_short(recorded[name])}, is gone"
        elif name not in recorded and (name == "not_measured" or place.endswith("not_measured")):
            continue  # a value that was missing without a reason has one now
        elif name not in recorded:
            yield f"{where}: is new, {_short(today[name])}"
        elif name in PROSE or place.endswith("not_measured"):
            yield from _gone(recorded[name], today[name], where)
        else:
            yield from differences(recorded[name], today[name], where)


def figures(record: dict[str, Any]) -> set[str]:
    """Every number in the sentences of a record, without the commas between thousands."""
    texts = [json.dumps(record[name], ensure_ascii=False) for name in PROSE if record.get(name)]
    return {found.replace(",", "") for text in texts for found in _FIGURE.findall(text)}


def _gone(recorded: Any, today: Any, where: str) -> Iterator[str]:
    moved = where.endswith((".costs", ".caveat"))  # what a change does to pixels was a caveat, and is a cost
    if bool(recorded) != bool(today) and not moved:
        yield f"{where}: recorded {_short(recorded)}, now {_short(today)}"


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, str) and isinstance(other, str):
        return _COMMENT.sub("", one) == _COMMENT.sub("", other)  # of a snippet
    if isinstance(one, bool) or isinstance(other, bool) or not isinstance(one, int | float):
        return type(one) is type(other) and bool(one == other)
    return isinstance(other, int | float) and math.isclose(one, other, rel_tol=TOLERANCE)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:200]} ..."


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_run_is_concluded_as_it_was(name: str, tmp_path: Path) -> None:
    run = read_run(put(name, tmp_path / name))
    today = as_schema_1(conclude(run))
    recorded = recording(name)
    recorded["recommendations"] = [_with_later_gains(fix, run) for fix in recorded["recommendations"]]
    lines = list(_without_starts(differences(conclusions_of(recorded), conclusions_of(today)), recorded))
    for then, now in zip(_starts(recorded["epoch_costs"]), _starts(today["epoch_costs"]), strict=True):
        assert 0 <= now["s_per_epoch"] <= then["s_per_epoch"]
    corrected = [f"recommendations.0{field}" for field in CORRECTED.get(name, ())]
    assert all(any(line.startswith(place) for line in lines) for place in corrected)
    assert set(REWORDED.get(name, ())) <= set(lines)
    assert name not in EXCLUDED or any(line.startswith(_AGAINST) for line in lines)
    expected = (
        *corrected,
        *(_OPEN if name in HELD_BY_NEIGHBORS else ()),
        *(_AGAINST if name in EXCLUDED else ()),
        *DECIDED_AGAIN.get(name, ()),
    )
    assert all(any(line.startswith(place) for line in lines) for place in DECIDED_AGAIN.get(name, ()))
    found = [line for line in lines if not line.startswith(expected) and line not in REWORDED.get(name, ())]
    assert not found, "\n".join([f"{name}: {len(found)} fields differ", *found[:SHOWN]])


@pytest.mark.parametrize(("name", "planted"), HELD_BY_NEIGHBORS.items())
def test_the_planted_stage_is_named_also_where_other_programs_hold_the_cpus(
    name: str, planted: str, tmp_path: Path
) -> None:
    found = conclude(read_run(put(name, tmp_path / name))).verdict
    assert (found.bound, found.stage, found.limit, found.confidence) == ("input", planted, "neighbors", "low")


@pytest.mark.parametrize("name", ["example_two_cores", "run_pruned", "profile_steps_marked"])
def test_what_a_run_lacks_has_its_reason(name: str, tmp_path: Path) -> None:
    run = conclude(read_run(put(name, tmp_path / name)))
    for record in (run, run.noise, *run.configurations):
        missing = {field for field, value in vars(record).items() if value is None}
        assert missing <= record.not_measured.keys()


def test_the_recordings_cover_every_cause() -> None:
    verdicts = [recording(name)["verdict"] for name in NAMES]
    covered = {(verdict["bound"], verdict["stage"], verdict["limit"]) for verdict in verdicts}
    assert not FOUND - covered, "a recording was lost"


def test_the_recordings_hold_every_kind_of_run() -> None:
    runs = [recording(name) for name in NAMES]
    trials = [trial for run in runs for trial in run["trials"]]
    kinds = {
        "profiles": [run for run in runs if run["kind"] == "profile"],
        "interrupted": [run for run in runs if not run["complete"]],
        "with a ladder": [run for run in runs if run["ladder"]],
        "with a remedy accepted": [tried for tried in tried_in(runs) if tried["accepted"]],
        "with a remedy in vain": [tried for tried in tried_in(runs) if not tried["accepted"]],
        "with ties": [run for run in runs if run["best"] and run["best"]["ties"]],
        "with GPUs": [run for run in runs if run["environment"]["gpus"]],
        "with bad images": [run for run in runs if run["dataset"]["bad_files"]],
        "with steps marked": [trial for trial in trials if trial["step_stages"]],
        "with a failed trial": [trial for trial in trials if trial["status"] == "failed"],
        "with a pruned trial": [trial for trial in trials if trial["status"] == "unavailable"],
    }
    assert not [kind for kind, found in kinds.items() if not found]


def tried_in(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The remedies that were tried in all of them."""
    return [tried for run in runs if run["verification"] for tried in run["verification"]["tried"]]


@pytest.mark.parametrize("name", ["example_two_cores", "profile_steps_marked"])
def test_a_recorded_run_is_shown(cli: Cli, name: str, tmp_path: Path) -> None:
    shown = cli("show", put(name, tmp_path / name), "--md", "-")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert f"{recording(name)['verdict']['bound'].upper()}-BOUND" in shown.stdout


def test_a_recorded_run_is_drawn(cli: Cli, tmp_path: Path) -> None:
    drawn = cli("report", put("example_two_cores", tmp_path / "run"))
    assert (drawn.returncode, drawn.stderr) == (0, "")
    assert (tmp_path / "run" / "report.html").stat().st_size > 100_000


def test_two_recorded_runs_are_compared(cli: Cli, tmp_path: Path) -> None:
    before, after = put("example_two_cores", tmp_path / "a"), put("example_two_cores", tmp_path / "b")
    compared = cli("compare", before, after, "--json", "-")
    assert (compared.returncode, compared.stderr) == (0, "")
    assert json.loads(compared.stdout)["comparison"]["outcome"] == "within noise"
