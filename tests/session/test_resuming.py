"""What may not differ from an earlier call, and what it leaves to go on with."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fakes import planned, trial_of
from machine import TWO_CPUS

from loaderbench.errors import UsageError
from loaderbench.records import AssumedDemand, DatasetSummary, Environment, Gpu, Measured, Readings, TimelinePoint
from loaderbench.session import resuming
from loaderbench.session.resuming import (
    Earlier,
    changed_code,
    lost_readings,
    mixed_round,
    overrides_of,
    read_earlier,
    refuse_another_suite,
    refuse_changes,
)

MACHINE = replace(
    TWO_CPUS,
    cpu_model="a CPU",
    python="3.11.7",
    versions={"torch": "2.4", "torchvision": "0.19", "pillow": "10", "numpy": "1.26", "psutil": "5"},
)
DATA = DatasetSummary("some images", files=24, classes=3)
SUITE: dict[str, Any] = {"name": "s", "measure": {"seconds": 1.0, "budget": None, "verify": True, "timeout_s": 60}}


DEMAND = AssumedDemand(samples_per_s=2470.0, origin="accelerator", accelerator="A100")


class FakeRun(SimpleNamespace):
    """A run that has only what is asked of it here."""

    section = Measured.section


def run_of(
    suite: dict[str, Any] = SUITE,
    machine: Environment = MACHINE,
    data: DatasetSummary = DATA,
    demand: AssumedDemand | None = None,
    consumer: str = "none",
    configs: tuple[dict[str, int], ...] = ({"num_workers": 0},),
) -> Any:
    return FakeRun(
        suite=suite,
        environment=machine,
        dataset=data,
        assumed_demand=demand,
        consumer=consumer,
        plan=SimpleNamespace(configs=configs),
    )


def refusal(*now: Any, then: Any = None, **changed: Any) -> str:
    """The error when a run is resumed as `now` with `changed` inputs."""
    earlier, resumed = Earlier(Path("r"), then or run_of(), {}, Readings()), run_of(*now, **changed)
    try:
        refuse_another_suite(earlier, resumed.suite)
        refuse_changes(earlier, resumed)
    except UsageError as error:
        return str(error)
    return ""


def measure(**changed: Any) -> dict[str, Any]:
    return {**SUITE, "measure": {**SUITE["measure"], **changed}}


def test_what_is_as_it_was_goes_on() -> None:
    assert refusal() == ""


def test_one_relative_path_that_is_another_folder_now_is_refused() -> None:
    there, here = (replace(DATA, root=f"/{'long' * 20}/{name}/photos") for name in ("there", "here"))
    said = refusal(data=here, then=run_of(data=there))
    assert said == f"--resume r: image folder changed from {there.root} to {here.root}; start a new run"
    assert refusal(data=here, then=run_of(data=here)) == refusal(data=here, then=run_of()) == ""


@pytest.mark.parametrize("changed", [{"budget": 60}, {"verify": False}, {"timeout_s": 5}])
def test_how_long_it_may_take_and_whether_remedies_are_tried_may_differ(changed: dict[str, Any]) -> None:
    assert refusal(measure(**changed)) == ""


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"suite": measure(seconds=2.0)}, "measure.seconds changed from 1.0 to 2.0"),
        ({"suite": measure(rounds=7)}, "measure.rounds changed from None to 7"),
        ({"suite": {**SUITE, "name": "t"}}, "name changed from s to t"),
        ({"suite": {**SUITE, "sweep": {"num_workers": [1]}}}, "sweep changed from None to {'num_workers': [1]}"),
        ({"suite": {"name": "s"}}, "measure changed from {"),
        ({"machine": replace(MACHINE, cpu_model=None)}, "machine.cpu_model changed from a CPU to None"),
        ({"machine": replace(MACHINE, cpus_allotted=1.5)}, "machine.cpus_allotted changed from 2.0 to 1.5"),
        ({"machine": replace(MACHINE, python="3.12")}, "machine.python changed from 3.11.7 to 3.12"),
        (
            {"machine": replace(MACHINE, gpus=(Gpu(0, "GPU-7", "H200", 1),))},
            "machine.gpus changed from [] to ['GPU-7']",
        ),
        ({"data": replace(DATA, files=23)}, "dataset.files changed from 24 to 23"),
        ({"data": replace(DATA, classes=4)}, "dataset.classes changed from 3 to 4"),
        ({"data": replace(DATA, description="x")}, "dataset.description changed from some images to x"),
        *(
            (
                {"machine": replace(MACHINE, versions={**MACHINE.versions, name: "9"})},
                f"version of {name} changed from {MACHINE.versions[name]} to 9",
            )
            for name in ("torch", "torchvision", "pillow", "numpy")
        ),
    ],
)
def test_what_differs_is_named_with_both_values(given: dict[str, Any], said: str) -> None:
    found = refusal(**given)
    assert found.startswith(f"--resume r: {said}")
    assert "more" not in found


def test_a_published_rate_that_was_corrected_is_another_demand() -> None:
    named = {"suite": {**SUITE, "consumer": {"accelerator": "a100", "demand": None}}, "consumer": "emulated"}
    then = run_of(**named, demand=DEMAND)
    assert refusal(**named, demand=DEMAND, then=then) == ""
    found = refusal(**named, demand=replace(DEMAND, samples_per_s=2500.0), then=then)
    assert found == "--resume r: target in samples/s changed from 2470.0 to 2500.0; start a new run"


@pytest.mark.parametrize(
    ("demand", "said"), [(1000.0, ""), (900.0, "target in samples/s changed from 1000.0 to 900.0")]
)
def test_a_run_of_an_earlier_version_kept_the_resolved_demand_in_its_suite(demand: float, said: str) -> None:
    then = run_of({**SUITE, "consumer": {"demand": 1000.0}}, consumer="emulated")
    now = AssumedDemand(samples_per_s=demand, origin="default")
    found = refusal({**SUITE, "consumer": {"demand": None}}, then=then, demand=now, consumer="emulated")
    assert found == (f"--resume r: {said}; start a new run" if said else "")


def test_other_configurations_are_another_run() -> None:
    """`auto` resolves to what is installed and supported by this version."""
    said = refusal(configs=({"num_workers": 0}, {"num_workers": 3}))
    assert said == "--resume r: configs differ (1 then, 2 now): auto resolved to other values; start a new run"


def test_what_changes_no_measurement_may_differ() -> None:
    other = replace(MACHINE, versions={**MACHINE.versions, "psutil": "6"}, cpus_online=64, open_files_limit=9)
    assert refusal(machine=other, data=replace(DATA, total_files=9)) == ""


def test_the_first_of_several_differences_is_named_and_the_others_are_counted() -> None:
    found = refusal({**measure(seconds=2.0), "name": "t"}, replace(MACHINE, python="3.12"))
    assert "measure.seconds" in found
    assert "(and 1 more)" in found  # the machine is not looked at
    assert "(and 1 more)" in refusal(machine=replace(MACHINE, python="3.12", cpus_allotted=1.5))


def test_of_two_differences_one_more_is_counted_and_they_are_in_the_order_of_their_names() -> None:
    changed = {**SUITE, **dict.fromkeys("zyxwvutsrqpon", 1)}
    assert refusal(changed).startswith("--resume r: n changed from None to 1")
    assert refusal({**measure(zoo=1, air=2, mud=3)}).startswith("--resume r: measure.air changed from None")
    assert "(and 1 more)" in refusal(measure(air=1, zoo=2))


def test_a_long_value_is_cut_to_sixty_letters() -> None:
    whole, cut = (refusal({**SUITE, "name": "x" * length}) for length in (60, 61))
    assert f"to {'x' * 60};" in whole
    assert f"to {'x' * 57}...;" in cut


@pytest.fixture
def left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A folder with what an earlier call is said to have left."""
    found = FakeRun(
        complete=False, kind="sweep", overrides={"measure.seed": 7, "sweep.a.b": [1]}, suite=SUITE, trials=()
    )
    trials = [
        trial_of(planned("r1-c00")),
        trial_of(planned("r1-aa", role="twin")),
        trial_of(planned("r1-c01"), None),
        trial_of(planned("r1-warm", role="isolation", isolation="loader_warm")),
        trial_of(planned("v01", role="remedy")),
    ]
    points = [TimelinePoint(trial.id, 0.1, "rss_bytes", 1.0) for trial in trials]
    monkeypatch.setattr(resuming, "read_run", lambda _: found)
    monkeypatch.setattr(resuming, "readable_trials", lambda _: (trials, ()))
    monkeypatch.setattr(resuming, "readable_timeline", lambda _: (Readings(points), ()))
    return found


def test_completed_trials_of_the_sweep_are_kept_with_their_readings_and_no_others(left: Any, tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "run.json"):
        earlier = read_earlier(place)
        assert earlier.folder == tmp_path
        assert list(earlier.trials) == ["r1-c00", "r1-aa"]
        assert earlier.readings.trials == ("r1-c00", "r1-aa")


def test_trials_that_only_run_json_still_has_are_kept_too(
    left: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = trial_of(planned("r1-c00")), trial_of(planned("r1-c01"))
    left.trials = (first, second)
    for saved in ([], [first]):
        monkeypatch.setattr(resuming, "readable_trials", lambda _, saved=saved: (saved, ()))
        assert read_earlier(tmp_path).trials == {"r1-c00": first, "r1-c01": second}


def test_a_damaged_line_is_named_and_its_trial_measured_again(
    left: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = ("r/trials.jsonl: line 2 cannot be read",)
    monkeypatch.setattr(resuming, "readable_trials", lambda _: ([trial_of(planned("r1-c00"))], said))
    earlier = read_earlier(tmp_path)
    assert list(earlier.trials) == ["r1-c00"]
    assert lost_readings(earlier) == f"{said[0]}; what only that file had is measured again"


def kept(*began: str) -> Earlier:
    trials = {at: replace(trial_of(planned("r1-c00")), started_at=at) for at in began}
    return Earlier(Path("r"), run_of(), trials, Readings())


def test_kept_trials_of_a_killed_call_without_readings_are_counted(left: Any, tmp_path: Path) -> None:
    earlier = read_earlier(tmp_path)
    assert not lost_readings(earlier)
    killed = replace(earlier, readings=earlier.readings.only(["r1-aa"]))
    assert lost_readings(killed).startswith("1 of 2 kept trials have no timeline and no batches")
    broken = replace(earlier, unreadable=("run/timeline.parquet: cannot read: no magic bytes",))
    assert lost_readings(broken) == "run/timeline.parquet: cannot read: no magic bytes"


def test_code_that_changed_after_kept_trials_is_named(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    for name, changed in (("old.py", "2026-01-01T10:00:00"), ("pkg/__init__.py", "2026-01-01T12:00:00")):
        (tmp_path / name).touch()
        at_s = datetime.fromisoformat(f"{changed}+00:00").timestamp()
        os.utime(tmp_path / name, (at_s, at_s))
    earlier = kept("2026-01-01T11:00:00+00:00", "2026-01-01T11:59:59+00:00", "2026-01-01T12:00:01+00:00")
    assert changed_code(earlier, ["old:make", "nowhere.there:make"], tmp_path) == ""
    assert changed_code(earlier, ["old:make", "pkg:make"], tmp_path) == (
        "pkg/__init__.py changed after 2 of 3 kept trials, which measured the earlier code; "
        "start a new run to repeat them"
    )
    assert changed_code(kept(), ["pkg:make"], tmp_path) == ""


def test_failures_on_which_an_adaptive_sweep_decided_are_kept_too(left: Any, tmp_path: Path, monkeypatch: Any) -> None:
    left.suite = measure(strategy="adaptive")
    trials = [
        trial_of(planned("r1-c00")),
        trial_of(planned("r1-c01"), None),
        trial_of(planned("r2-c00", number=2)),
        trial_of(planned("r2-c01", number=2), None),
    ]
    monkeypatch.setattr(resuming, "readable_trials", lambda _: (trials, ()))
    assert list(read_earlier(tmp_path).trials) == ["r1-c00", "r1-c01", "r2-c00"]


def test_what_the_flags_of_the_earlier_call_set_is_set_again(left: Any, tmp_path: Path) -> None:
    found = overrides_of(tmp_path)
    assert [(one.path, one.value) for one in found] == [(("measure", "seed"), 7), (("sweep", "a.b"), [1])]
    assert all(str(tmp_path) in one.flag for one in found)
    assert overrides_of(None) == []


@pytest.mark.parametrize(
    ("changed", "said"), [({"complete": True}, "that run is complete"), ({"kind": "profile"}, "profile")]
)
def test_what_is_over_or_was_no_sweep_is_not_gone_on_with(
    left: Any, tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    vars(left).update(changed)
    with pytest.raises(UsageError, match=said):
        read_earlier(tmp_path)


def test_a_folder_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=re.escape(f"--resume {tmp_path / 'none'}: no such run folder")):
        read_earlier(tmp_path / "none")


def test_a_round_with_trials_of_two_calls_is_noted(left: Any, tmp_path: Path) -> None:
    def mixed(configurations: int, *, is_adaptive: bool = False) -> str:
        plan: Any = SimpleNamespace(rounds=3, configurations=range(configurations), is_adaptive=is_adaptive)
        return mixed_round(read_earlier(tmp_path), plan)

    assert mixed(1) == ""
    assert mixed(2).startswith("round 1 has trials of two calls")
    assert mixed(2, is_adaptive=True) == ""
