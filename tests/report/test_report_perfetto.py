"""The Chrome trace of real loaders: valid events, nothing overlaps, and times are those that were recorded."""

from __future__ import annotations

import gzip
import json
import time
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import run_lanes as own
import run_profiles as profiles
import torch
from torch.utils.data import DataLoader, Dataset

from loaderbench import Profiler, Run
from loaderbench.errors import UsageError
from loaderbench.records import Readings, TimelinePoint
from loaderbench.report.perfetto import CALLS, FIRST_WORKER, STEPS, chrome_trace
from loaderbench.result import load

NANOSECOND_US = 1e-3
STRAGGLER = 61  # a sample: of batch 15, for batches of 4
Event = dict[str, Any]


class Straggling(Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 100

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(0.3 if index == STRAGGLER else 0.002)
        return torch.zeros(4)


def profiled(workers: int, *, persistent: bool, trace: bool = True) -> Run:
    loader = DataLoader(Straggling(), 4, num_workers=workers, persistent_workers=persistent)
    with Profiler("lanes", warmup=3, trace=trace) as profiler:
        for _ in range(2):
            for _ in profiler.iter(loader):
                time.sleep(0.002)
    return profiler.result


def trace_of(run: Run, path: Path) -> list[Event]:
    run.to_perfetto(path)
    found: list[Event] = json.loads(path.read_text())["traceEvents"]
    return found


def slices(events: list[Event]) -> dict[int, list[Event]]:
    found = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            found[event["tid"]].append(event)
    return found


def end_of(event: Event) -> float:
    return float(event["ts"] + event["dur"])


def check_events(events: list[Event]) -> None:
    """By the Trace Event Format: what each phase has to have; slices of a thread lie in one another or apart."""
    for event in events:
        assert event["ph"] in {"M", "X", "C", "s", "f"}
        assert isinstance(event["pid"], int)
        if event["ph"] != "M":
            assert event["ts"] >= 0
        if event["ph"] == "X":
            assert event["dur"] >= 0
            assert event["name"]
    for own_slices in slices(events).values():
        open_until = [float("inf")]
        for event in sorted(own_slices, key=lambda one: (one["ts"], -one["dur"])):
            while open_until[-1] <= event["ts"] + NANOSECOND_US and len(open_until) > 1:
                open_until.pop()
            assert end_of(event) <= open_until[-1] + NANOSECOND_US, event
            open_until.append(end_of(event))


@pytest.fixture(scope="module", params=[(0, False), (1, False), (2, False), (2, True)], ids=str)
def run_and_events(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    workers, persistent = request.param
    run = profiled(workers, persistent=persistent)
    return workers, run, trace_of(run, tmp_path_factory.mktemp("trace") / "trace.json")


def test_the_events_are_valid_and_do_not_overlap(run_and_events: Any) -> None:
    _, _, events = run_and_events
    check_events(events)


def test_threads_have_names(run_and_events: Any) -> None:
    workers, _, events = run_and_events
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    made = {FIRST_WORKER + worker: f"worker {worker}" for worker in range(workers)}
    assert names == {CALLS: "main process: next()", STEPS: "training step"} | made
    (process,) = [event["args"]["name"] for event in events if event["name"] == "process_name"]
    assert process.startswith(f"lanes, trial profile: batch_size=4 num_workers={workers} ")


def test_the_straggler_is_a_long_batch_of_its_worker_in_each_epoch(run_and_events: Any) -> None:
    workers, _, events = run_and_events
    batches = [e for own_slices in slices(events).values() for e in own_slices if e["cat"] == "batch"]
    assert len(batches) == 50
    planted = [event for event in batches if event["args"]["batch"] == STRAGGLER // 4]
    assert sorted(event["args"]["epoch"] for event in planted) == [0, 1]
    assert {event["tid"] for event in planted} == {FIRST_WORKER + 15 % workers if workers else CALLS}
    assert all(event["dur"] >= 300_000 for event in planted)
    assert median(event["dur"] for event in batches) < 300_000


def test_waits_add_up_to_the_recorded_data_wait(run_and_events: Any) -> None:
    _, run, events = run_and_events
    trial = run.trials[0]
    steady = {(b.epoch, b.batch) for b in run.readings.batches["profile"] if b.steady}
    waits = [e for e in slices(events)[STEPS] if e["cat"] == "wait"]
    counted = [e for e in waits if (e["args"]["epoch"], e["args"]["batch"]) in steady]
    assert len(counted) == trial.data_wait.count
    recorded_us = trial.data_wait.mean_s * trial.data_wait.count * 1e6
    assert sum(event["dur"] for event in counted) == pytest.approx(recorded_us, rel=1e-3, abs=100)


def test_arrows_lead_from_the_worker_s_batch_to_the_call_that_took_it(run_and_events: Any) -> None:
    workers, _, events = run_and_events
    starts = {event["id"]: event for event in events if event["ph"] == "s"}
    ends = {event["id"]: event for event in events if event["ph"] == "f"}
    assert starts.keys() == ends.keys()
    assert len(starts) == (50 if workers else 0)
    lanes = slices(events)
    for number, start in starts.items():
        made = next(e for e in lanes[start["tid"]] if e["cat"] == "batch" and e["ts"] <= start["ts"] <= end_of(e))
        call = next(e for e in lanes[CALLS] if e["ts"] <= ends[number]["ts"] <= end_of(e))
        assert made["args"]["batch"] == call["args"]["batch"]
        assert start["ts"] <= ends[number]["ts"]
        assert ends[number]["bp"] == "e"


def test_ready_batches_and_readings_are_counters(run_and_events: Any) -> None:
    workers, _, events = run_and_events
    counters = defaultdict(list)
    for event in events:
        if event["ph"] == "C":
            counters[event["name"]].append(event["args"]["value"])
    assert ("ready batches" in counters) is (workers > 0)
    most = 2 * workers + 1  # torch asks for another before it hands one over
    assert all(0 <= count <= most for count in counters.get("ready batches", ()))
    assert any(name != "ready batches" for name in counters)


def test_an_untraced_loader_has_the_loop_s_threads(tmp_path: Path) -> None:
    events = trace_of(profiled(2, persistent=False, trace=False), tmp_path / "trace.json")
    check_events(events)
    assert set(slices(events)) == {CALLS, STEPS}
    assert not [event for event in events if event["ph"] in "sf"]


def test_a_name_that_ends_in_gz_is_compressed(tmp_path: Path) -> None:
    run, readings = own.with_straggler()
    Run(run, readings).to_perfetto(tmp_path / "trace.json.gz")
    trace = json.loads(gzip.decompress((tmp_path / "trace.json.gz").read_bytes()))
    assert trace["displayTimeUnit"] == "ms"
    check_events(trace["traceEvents"])


def test_stages_lie_in_their_batch_in_order() -> None:
    events = chrome_trace(*own.with_straggler())["traceEvents"]
    first = sorted(slices(events)[FIRST_WORKER], key=lambda event: (event["ts"], -event["dur"]))[:5]
    assert [event["name"] for event in first] == ["batch 0", "read", "decode", "sample", "collate"]
    assert all(before["ts"] <= after["ts"] for before, after in pairwise(first))


def test_readings_that_are_no_numbers_are_left_out() -> None:
    run, readings = own.with_straggler()
    readings.extend(TimelinePoint(run.trials[0].id, 0.1 * n, "threads", v) for n, v in enumerate([1.0, float("nan")]))
    events = chrome_trace(run, readings)["traceEvents"]
    assert [event["args"]["value"] for event in events if "hreads" in event["name"]] == [1.0]


def test_a_run_without_batches_says_so_in_one_line() -> None:
    with pytest.raises(UsageError, match="no batches of its trials were saved"):
        chrome_trace(profiles.traced(), Readings())


@pytest.mark.parametrize("trial", [None, "p1-c0-after"])
def test_a_run_of_two_versions_keeps_none_and_says_what_can_be_exported(trial: str | None) -> None:
    with pytest.raises(UsageError, match=r"a run of ab keeps no batches; export its trials with --to csv"):
        chrome_trace(replace(profiles.traced(), kind="ab"), Readings(), trial)


def test_an_unknown_trial_is_told_with_those_that_there_are() -> None:
    run, readings = own.with_straggler()
    with pytest.raises(UsageError, match=f"trial x: expected one of {run.trials[0].id}"):
        chrome_trace(run, readings, "x")


def test_a_saved_sweep_has_its_batches(small_run: Any, tmp_path: Path) -> None:
    """Of a real run in processes of their own: trial by trial, with and without a worker, an emulated GPU."""
    folder, _ = small_run
    run = load(folder)
    for trial in run.sweep:
        run.to_perfetto(tmp_path / "trace.json", trial.id)
        events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
        check_events(events)
        workers = int(trial.config["num_workers"])
        assert {thread for thread in slices(events) if thread >= FIRST_WORKER} == set(
            range(FIRST_WORKER, FIRST_WORKER + workers)
        )
        kept = run.readings.batches[trial.id]
        assert sum(batch.wait_s or 0.0 for batch in kept if batch.steady) / trial.steady_s == pytest.approx(
            trial.data_wait_share, rel=1e-3, abs=1e-4
        )


def test_without_a_consumer_a_trace_has_the_calls_of_next_and_no_waits_or_steps() -> None:
    run = profiles.traced()
    alone = replace(run, consumer="none", trials=(replace(run.trials[0], consumer="none"),))
    for traced, has_steps in ((run, True), (alone, False)):
        readings = Readings([TimelinePoint(traced.trials[0].id, 0.5, "data_wait_s", 0.1)])
        readings.keep_batches(traced.trials[0].id, own.batches())
        events = chrome_trace(traced, readings)["traceEvents"]
        assert any(event.get("tid") == CALLS for event in events)
        assert any(event.get("tid") == STEPS for event in events) is has_steps
        assert ("data_wait_s" in {event["name"] for event in events}) is has_steps
