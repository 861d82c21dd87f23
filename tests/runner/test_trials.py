"""Trials in real processes: what they measure, how they fail, and that nothing of them stays."""

from __future__ import annotations

import os
import signal
import threading
import time
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import psutil
import pytest
from target_trials import TARGETS, completed, run, target

from loaderbench.records import Config
from loaderbench.runner import ForkServerKilledError, TrialRunner, TrialServer

SPOILS = ("shapes", "leaves", "unsendable")


def left_over() -> list[list[str]]:
    """The processes that targets start next to their work and that still live."""
    return [p.info["cmdline"] for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] in _SLEEPS]


_SLEEPS = (["sleep", f"1234.{os.getpid()}"], ["sleep", f"4321.{os.getpid()}"])


@pytest.mark.timed  # the samples that were traced are held against all of them
@pytest.mark.parametrize("workers", [0, 2])
def test_a_dataset_is_measured_with_and_without_workers(runner: TrialRunner, tmp_path: Path, workers: int) -> None:
    outcome = run(runner, tmp_path, target("numbers"), {"batch_size": 4, "num_workers": workers})
    trial = completed(outcome)
    assert (trial.samples_per_s or 0) > 0
    assert (trial.batches or 0) >= 20
    assert (trial.batches or 0) % max(1, workers) == 0
    assert (trial.warmup_batches or 0) > workers * 2
    assert trial.samples == (trial.batches or 0) * 4
    assert 0.5 < (trial.data_wait_share or 0) <= 1
    assert (trial.pss_bytes or 0) > 10_000_000
    assert {point.metric for point in outcome.timeline} >= {"cpu_percent_of_allotted", "rss_bytes", "data_wait_s"}
    assert trial.stages is not None
    sample_s = trial.stages["sample"].wall_s or 0
    # a sleep of a millisecond takes no less, and on a busy machine as long as it likes, but no longer than all took:
    # those and the batch at the border
    longest_s = max(1, workers) * ((trial.steady_s or 0) + (trial.data_wait.max_s if trial.data_wait else 0))
    assert 0.00099 <= sample_s <= 1.01 * longest_s / (trial.samples or 1)
    assert trial.data_wait is not None
    assert trial.step is not None
    both_s = (trial.data_wait.mean_s + trial.step.mean_s) * (trial.batches or 0)
    assert both_s == pytest.approx(trial.steady_s, rel=0.01)
    if workers:
        assert trial.workers is not None
        assert trial.workers.count == workers
        assert trial.workers.blocked_share > trial.workers.on_cpu_share  # its samples sleep
    else:
        assert "workers" in trial.not_measured


@pytest.mark.parametrize("method", ["fork", "forkserver", pytest.param("spawn", marks=pytest.mark.slow)])
def test_workers_start_by_the_method_that_was_asked_for(runner: TrialRunner, tmp_path: Path, method: str) -> None:
    config = {"batch_size": 4, "num_workers": 1, "multiprocessing_context": method}
    assert completed(run(runner, tmp_path, target("numbers"), config)).batches


@pytest.mark.parametrize("name", ["stream", "generator"])
def test_streams_and_generators_are_measured(runner: TrialRunner, tmp_path: Path, name: str) -> None:
    config = {"batch_size": 8} if name == "stream" else {}
    assert (completed(run(runner, tmp_path, target(name), config)).samples_per_s or 0) > 0


def test_a_target_that_takes_an_axis_makes_its_own_loader(runner: TrialRunner, tmp_path: Path) -> None:
    trial = completed(run(runner, tmp_path, target("loader"), {"batch_size": 16}))
    assert trial.samples == (trial.batches or 0) * 16


@pytest.mark.parametrize("loader", [None, {"batch_size": None, "drop_last": True}])
def test_without_batches_each_item_is_a_sample(runner: TrialRunner, tmp_path: Path, loader: Any) -> None:
    name = "unbatched" if loader is None else "Images"
    trial = completed(run(runner, tmp_path, target(name), {}, loader=loader))
    assert trial.samples == trial.batches


@pytest.mark.parametrize(
    ("name", "config", "kind", "words"),
    [
        ("numbers", {"num_workers": 1}, "error", "planted in a worker"),
        ("kill", {"num_workers": 1}, "worker_killed", "killed by signal"),
        ("leaves", {"num_workers": 1}, "worker_exited", "exited unexpectedly"),
        ("unsendable", {"num_workers": 1}, "hang", "before that: "),
        ("shapes", {"batch_size": 4}, "collate", "sample 0 is Tensor[1], sample 1 is Tensor[2]. Samples of a batch"),
        ("kills_itself", {}, "process_killed", "signal 9"),
        ("exits", {}, "process_exited", "exited with code 7"),
        ("not_a_loader", {}, "error", "expected a Dataset or an iterable"),
        ("loader", {"batch_size": 4, "prefetch_factor": 3}, "error", "no effect: prefetch_factor"),
        ("numbers_", {}, "target", "has no numbers_; did you mean numbers?"),
    ],
)
def test_a_failing_trial_is_a_record_with_its_cause(
    runner: TrialRunner, tmp_path: Path, name: str, config: dict[str, Any], kind: str, words: str
) -> None:
    spoilt = {"numbers": "raise", "kill": "kill_worker"}.get(name, name if name in SPOILS else None)
    dataset = target("numbers", spoil=spoilt) if spoilt else target(name)
    trial = run(runner, tmp_path, dataset, config, timeout_s=5.0 if kind == "hang" else 60.0).trial
    assert trial.failure is not None
    assert (trial.status, trial.failure.kind) == ("timed_out" if kind == "hang" else "failed", kind), trial.failure
    assert words in f"{trial.failure.message} {trial.failure.hint}"
    assert trial.samples_per_s is None
    silent = {field for field, value in vars(trial).items() if value is None} - set(trial.not_measured)
    assert silent == {"freed", "isolation", "rank", "side", "slowest_rank"}


def test_the_memory_of_workers_is_read_while_they_live(runner: TrialRunner, tmp_path: Path) -> None:
    held = 60_000 * 1024
    trial = completed(run(runner, tmp_path, target("heavy"), {"batch_size": 4, "num_workers": 2}))
    assert (trial.pss_bytes or 0) > 2 * held


def test_epoch_ends_are_counted_and_an_endless_loader_does_not_end_early(runner: TrialRunner, tmp_path: Path) -> None:
    looped = completed(run(runner, tmp_path, target("loader"), {"batch_size": 16}))
    assert (looped.epoch_ends or 0) > 0
    assert looped.samples_per_epoch == 64
    endless = completed(run(runner, tmp_path, target("numbers"), {"batch_size": 16}))
    assert (endless.epoch_ends, endless.ended_early) == (0, False)


def test_what_a_trial_prints_is_in_its_log(runner: TrialRunner, tmp_path: Path) -> None:
    run(runner, tmp_path, target("exits"), {})
    assert "last words" in (tmp_path / "log").read_text()


def test_a_trial_that_stands_still_is_ended_with_all_it_started(runner: TrialRunner, tmp_path: Path) -> None:
    trial = run(runner, tmp_path, target("stands_still"), {}, timeout_s=4.0).trial
    assert trial.failure is not None
    assert (trial.status, trial.failure.kind) == ("timed_out", "hang")
    assert "building the dataset" in trial.failure.message
    assert left_over() == []


def test_a_trial_that_hangs_is_ended_by_what_its_neighbors_needed(
    server: TrialServer, runner: TrialRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loaderbench.runner.patience.LEAST_PATIENCE_S", 1.0)
    fresh = TrialRunner(server, runner._environment)
    completed(run(fresh, tmp_path, target("numbers"), {"batch_size": 4, "num_workers": 1}))
    trial = run(fresh, tmp_path, target("numbers", spoil="lock"), {"batch_size": 4, "num_workers": 1}).trial
    assert trial.failure is not None
    assert (trial.status, trial.failure.kind) == ("timed_out", "hang")
    assert trial.failure.message.startswith("no progress for ")
    assert trial.failure.message.count(" is in ") == 2
    assert left_over() == []


def test_a_hang_says_where_each_process_stands_and_the_log_has_its_stacks(runner: TrialRunner, tmp_path: Path) -> None:
    dataset, config = target("numbers", spoil="lock"), {"batch_size": 4, "num_workers": 1}
    failure = run(runner, tmp_path, dataset, config, timeout_s=5.0).trial.failure
    assert failure is not None
    assert failure.kind == "hang"
    assert failure.message.count(" is in ") == 2, "the trial's own process and its worker"
    assert "__getitem__ (lb_runner_targets.py:" in failure.message
    log = (tmp_path / "log").read_text()
    assert log.count("--- process") == 2
    assert "in __getitem__" in log


def test_children_of_a_trial_that_succeeded_are_ended_too(runner: TrialRunner, tmp_path: Path) -> None:
    completed(run(runner, tmp_path, target("leaves_a_child"), {"batch_size": 4}))
    assert left_over() == []


@pytest.mark.slow
def test_nothing_outlives_a_run_that_was_killed_not_even_a_loader_that_stands_still(tmp_path: Path) -> None:
    import subprocess
    import sys

    (tmp_path / "lb_runner_targets.py").write_text(TARGETS)
    (tmp_path / "s.yaml").write_text("dataset: {kind: target, target: 'lb_runner_targets:stands_still'}")
    running = subprocess.Popen(
        [sys.executable, "-m", "loaderbench", "run", "s.yaml", "--out", "r", "-q"], cwd=tmp_path, stderr=subprocess.PIPE
    )
    deadline = time.monotonic() + 120
    while not left_over() and time.monotonic() < deadline:
        time.sleep(0.1)
    started = psutil.Process(running.pid).children(recursive=True)
    assert left_over()
    running.kill()
    running.wait()
    _, alive = psutil.wait_procs(started, timeout=20)
    assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []


@pytest.mark.slow
def test_a_script_without_a_main_guard_is_not_run_again_by_its_trials(tmp_path: Path) -> None:
    import subprocess
    import sys

    (tmp_path / "s.yaml").write_text(
        "dataset: {kind: target, target: 'lb_runner_targets:numbers'}\nsweep: {batch_size: [4]}\n"
        "consumer: {kind: none}\nmeasure: {rounds: 1, seconds: 0.1, verify: false}\n"
    )
    (tmp_path / "lb_runner_targets.py").write_text(TARGETS)
    (tmp_path / "script.py").write_text(
        "import loaderbench\nprint('once')\nprint(loaderbench.run('s.yaml', out='r').trials[0].status)\n"
    )
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.stdout == "once\ncompleted\n", done.stderr


def kill_the_fork_server(place: Path, times: int) -> threading.Thread:
    """Kill it while a trial runs, so many times; the trial's dataset leaves a file for each time that it starts."""

    def kill() -> None:
        for time_ in range(times):
            while len(list(place.glob("started-*"))) <= time_:
                time.sleep(0.01)
            os.kill(forkserver._forkserver._forkserver_pid, signal.SIGKILL)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    return thread


@pytest.mark.slow
def test_a_trial_whose_fork_server_was_killed_is_measured_once_more(runner: TrialRunner, tmp_path: Path) -> None:
    killer = kill_the_fork_server(tmp_path, 1)
    trial = completed(run(runner, tmp_path, target("announced", place=str(tmp_path)), {"num_workers": 1}, seconds=1.0))
    killer.join()
    assert trial.samples_per_s
    assert len(list(tmp_path.glob("started-*"))) == 2


@pytest.mark.slow
def test_a_fork_server_that_is_killed_again_is_named(runner: TrialRunner, tmp_path: Path) -> None:
    killer = kill_the_fork_server(tmp_path, 2)
    outcome = run(runner, tmp_path, target("announced", place=str(tmp_path)), {"num_workers": 1}, seconds=1.0)
    killer.join()
    assert outcome.trial.failure
    assert outcome.trial.failure.kind == "fork_server_killed"
    completed(run(runner, tmp_path, target("numbers"), {"num_workers": 0}))  # another server was started


def test_a_trial_that_no_fork_server_lives_to_start_is_tried_twice_and_fails(
    runner: TrialRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[object] = []

    def killed(_: TrialServer, *call: object) -> None:
        tried.append(call)
        raise ForkServerKilledError

    monkeypatch.setattr(TrialServer, "start", killed)
    trial = run(runner, tmp_path, target("numbers"), {"num_workers": 0}).trial
    assert (trial.status, len(tried), trial.log) == ("failed", 2, None)
    assert trial.failure
    assert trial.failure.kind == "fork_server_killed"
    assert "samples_per_s" in trial.not_measured


def test_the_server_s_children_do_not_import_torch_again(server: TrialServer, runner: TrialRunner) -> None:
    ours, theirs = server.pipe()
    process = server.start(_tell_modules, theirs)
    theirs.close()
    assert ours.poll(60)
    already_there, cuda = ours.recv()
    process.join()
    assert already_there is (server.method == "forkserver")
    assert cuda is False


def _tell_modules(pipe: Any) -> None:
    import sys

    there = "torchvision" in sys.modules
    import torch

    pipe.send((there, torch.cuda.is_initialized()))
    time.sleep(0.05)


def test_a_transform_in_c_that_tells_no_parameters_is_the_function_of_an_image() -> None:
    from loaderbench.datasets.own_transform import own_transform

    assert own_transform(max) is max


def test_what_a_fix_set_for_a_loader_that_another_fix_replaced_has_no_effect(
    runner: TrialRunner, tmp_path: Path
) -> None:
    config: Config = {"batch_size": 4, "loader": "torch", "num_workers": 1, "threads": 4, "queued": 2}
    trial = completed(run(runner, tmp_path, target("numbers"), config))
    assert (trial.config, trial.workers.count if trial.workers else None) == (config, 1)
