"""A user's own loop, recorded: the figures are those that were planted."""

from __future__ import annotations

import hashlib
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from loops import Bounds, Numbers, Planted, augment, pause, seconds_of, trial_of
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from loaderbench import Profiler
from loaderbench.profiler.observer import Observer
from loaderbench.profiler.readings import AT_THE_END
from loaderbench.records import Gpu


def test_a_gpu_that_cannot_be_read_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(observer: Observer) -> None:
        if not observer.gpus:
            observer.gpus = (Gpu(0, "GPU-of-no-machine", "", 1),)
            observer.watch_gpus(observer.gpus)

    monkeypatch.setattr(Observer, "_find_gpus", find)
    monkeypatch.setattr("loaderbench.profiler.observer.cuda_devices_in_use", lambda: (0,))
    with Profiler("train") as prof:
        for _ in prof.iter(Planted()):
            pass
    reasons = trial_of(prof.result).gpus[0].not_measured
    assert set(reasons) >= {"utilization_percent", "memory_used_bytes"}
    assert reasons.pop("peak_allocated_bytes") == reasons.pop("peak_reserved_bytes")
    assert "only in isolation runs" in reasons.pop("copy_speed")
    assert set(reasons.values()) == {prof._observer.gpu_monitor.why_not(0)[""]}


def test_wait_and_step_lie_between_the_clocks_inside_and_around_them() -> None:
    loader, steps_s, waits_s = Planted(), [], []
    with Profiler("train", warmup=5) as prof:
        ended_s = time.perf_counter()
        for _ in prof.iter(loader):
            waits_s.append(time.perf_counter() - ended_s)
            steps_s.append(pause(0.002))
            ended_s = time.perf_counter()
    trial = trial_of(prof.result)
    assert trial.data_wait is not None
    assert trial.step is not None
    assert (trial.batches, trial.samples, trial.data_wait.count) == (35, 140, 35)
    assert Bounds(loader.slept_s[5:], waits_s[5:]).hold(trial.data_wait.mean_s)
    assert Bounds(steps_s[5:], loader.away_s[5:]).hold(trial.step.mean_s)


def test_wait_and_step_add_up_to_the_wall_time() -> None:
    with Profiler(warmup=3) as prof:
        for _ in prof.iter(Planted()):
            pause(0.001)
    trial = trial_of(prof.result)
    assert trial.data_wait is not None
    assert trial.step is not None
    assert trial.batches is not None
    both_s = (trial.data_wait.mean_s + trial.step.mean_s) * trial.batches
    assert both_s == pytest.approx(trial.steady_s)
    assert trial.data_wait_share == pytest.approx(trial.data_wait.mean_s * trial.batches / both_s)


def test_first_batch_and_epoch_boundaries_are_kept_apart() -> None:
    class SlowStart(Planted):
        def __iter__(self) -> Iterator[list[int]]:
            pause(0.2)
            yield from super().__iter__()
            pause(0.1)

    loader, first_s = SlowStart(10, 0.001), []
    with Profiler(warmup=2) as prof:
        ended_s = time.perf_counter()
        for _ in range(3):
            for number, _ in enumerate(prof.iter(loader)):
                if number == 0:
                    first_s.append(time.perf_counter() - ended_s)
                ended_s = time.perf_counter()
    trial = trial_of(prof.result)
    assert trial.epochs is not None
    assert trial.data_wait is not None
    assert trial.epochs.begun == 3
    assert Bounds([0.2], first_s[:1]).hold(trial.time_to_first_batch_s)
    assert Bounds([0.3, 0.3], first_s[1:]).hold(trial.epochs.boundary_s)
    assert trial.data_wait.count == 3 * 9 - 1  # the first batch of each epoch is apart, and one more was the warm-up's


def test_a_stage_of_the_loop_lies_between_the_clocks_inside_and_around_it() -> None:
    inside_s: list[float] = []

    def transfer() -> None:
        with prof.stage("transfer"):
            inside_s.append(pause(0.003))

    with Profiler(warmup=0) as prof:
        around_s = [seconds_of(transfer) for _ in prof.iter(Planted(20, 0.001))]
    trial = trial_of(prof.result)
    assert trial.step is not None
    assert trial.step_stages is not None
    transfer_s = trial.step_stages["transfer"].wall_s
    assert Bounds(inside_s[1:], around_s[1:]).hold(transfer_s)  # the first of an epoch is kept apart
    assert (transfer_s or 0) <= trial.step.mean_s


def test_a_stage_around_next_has_none_of_the_data_wait() -> None:
    with Profiler(warmup=2) as prof:
        batches = iter(prof.iter(Planted(30, 4e-3)))
        for _ in range(30):
            with prof.stage("fetch"):
                next(batches)
            with prof.stage("work"):
                pause(2e-3)
    trial = trial_of(prof.result)
    assert trial.step is not None
    assert trial.step_stages is not None
    assert sum(stage.wall_s or 0.0 for stage in trial.step_stages.values()) <= trial.step.mean_s
    assert (trial.step_stages["fetch"].wall_s or 0.0) < 1e-3
    assert (trial.step_stages["work"].wall_s or 0.0) >= 2e-3


def test_steps_end_the_recording_and_the_loop_goes_on() -> None:
    with Profiler(warmup=2, steps=5) as prof:
        seen = sum(1 for _ in prof.iter(Planted(30, 0.0)))
    assert seen == 30
    assert trial_of(prof.result).batches == 5


def test_a_loop_shorter_than_its_warm_up_is_told_all_the_same() -> None:
    with Profiler(warmup=10) as prof:
        list(prof.iter(Planted(4)))
    assert trial_of(prof.result).batches == 3
    assert any("within its warm-up" in note for note in prof.result.notes)


def test_start_and_stop_do_what_the_with_does() -> None:
    prof = Profiler("by hand", warmup=0).start()
    for number, _ in enumerate(prof.iter(Planted(20, 0.001))):
        if number == 9:
            result = prof.stop()
    assert trial_of(result).batches == 8
    assert result is prof.result


@pytest.mark.parametrize("workers", [0, 2])
def test_a_function_marked_as_a_stage_is_timed_where_it_runs(workers: int) -> None:
    prof = Profiler("marked", warmup=0)
    prof.marks_functions = True
    with prof:
        clocked = list(prof.iter(DataLoader(Numbers(), batch_size=4, num_workers=workers)))
    inside_s, around_s = (torch.cat(column).tolist() for column in list(zip(*clocked, strict=True))[1:])
    stages = trial_of(prof.result).stages
    assert stages is not None
    assert Bounds(inside_s, around_s).hold(stages["augment"].wall_s)


def test_stages_inside_a_loader_of_one_s_own_are_told_per_sample() -> None:
    inside_s, around_s = [], []
    prof = Profiler(warmup=0)
    decode = prof.stage("decode")(lambda: inside_s.append(pause(0.004)))

    def batches() -> Iterator[list[int]]:
        for _ in range(20):
            around_s.append(seconds_of(decode))
            yield [0] * 4

    with prof:
        for _ in prof.iter(batches()):
            pause(0.001)
    stages = trial_of(prof.result).stages
    assert stages is not None
    assert Bounds(inside_s, around_s).hold(stages["decode"].wall_s, over=80)


def test_tracing_a_loader_of_one_s_own_sees_what_it_reads_and_decodes(photos: Path) -> None:
    from PIL import Image

    def batches() -> Iterator[list[Any]]:
        for path in sorted(photos.rglob("*.jpg")):
            yield [Image.open(path).convert("RGB")]

    with Profiler(warmup=0, trace=True) as prof:
        list(prof.iter(batches()))
    stages = trial_of(prof.result).stages
    assert stages is not None
    assert (stages["decode"].wall_s or 0) > (stages["read"].wall_s or 0) > 0


def test_what_is_marked_does_its_work_without_a_profiler() -> None:
    assert augment(3) >= 0.002


def test_tracing_fills_stages_workers_and_slow_samples(photos: Path) -> None:
    from torchvision import transforms as t
    from torchvision.datasets import ImageFolder

    dataset = ImageFolder(str(photos), t.Compose([t.RandomResizedCrop(32), t.ToTensor()]))
    loader = DataLoader(dataset, batch_size=2, num_workers=1, shuffle=True)
    for doubled in range(6):  # a look that took long is not repeated soon: the one worker may be gone before a second
        with Profiler(warmup=4, trace=True) as prof:
            for _ in range(3):
                for _ in prof.iter(loader):
                    pause(0.01 * 2**doubled)
        trial = trial_of(prof.result)
        if trial.workers is not None:
            break
    assert set(trial.stages or ()) == {"read", "decode", "transform", "sample", "collate"}
    assert set(trial.stage_parts or ()) >= {"transform/RandomResizedCrop", "transform/ToTensor"}
    assert trial.workers is not None
    assert trial.workers.count == 1
    shares = trial.workers
    assert shares.on_cpu_share + shares.run_queue_share + shares.blocked_share == pytest.approx(1)
    assert trial.sample_times is not None
    assert trial.sample_times.slowest[0].path in {path for path, _ in dataset.samples}
    assert trial.tracing_s_per_sample is not None


@pytest.mark.parametrize("workers", [0, 1])
def test_a_new_loader_for_each_epoch_adds_to_what_was_traced(workers: int) -> None:
    with Profiler(warmup=0, trace=True) as prof:
        for _ in range(3):
            list(prof.iter(DataLoader(Numbers(16), batch_size=4, num_workers=workers)))
    times = trial_of(prof.result).sample_times
    assert times is not None
    assert times.wall.count == 48


class Hashed(Numbers):
    def __getitem__(self, index: int) -> Any:
        hashlib.pbkdf2_hmac("sha256", b"a sample", b"", 8_000)
        return super().__getitem__(index)


def test_workers_that_end_with_a_short_epoch_count_in_the_cpu_use() -> None:
    loader = DataLoader(Hashed(), batch_size=4, num_workers=2)
    with Profiler("train", warmup=0) as prof:
        for _ in range(10):
            for _ in prof.iter(loader):
                pass
    trial, environment = trial_of(prof.result), prof.result.environment
    assert trial.machine.own_cpus > 0.2
    by_all_programs = 100 * trial.machine.own_cpus / environment.cpus_allotted
    assert 0.7 < trial.cpu_percent_of_allotted / by_all_programs < 1.4  # their windows are not quite the same


def test_what_was_not_traced_says_why() -> None:
    with Profiler(warmup=0) as prof:
        list(prof.iter(DataLoader(Numbers(8), batch_size=2)))
    assert "trace=True" in trial_of(prof.result).not_measured["stages"]
    with Profiler(warmup=0, trace=True) as prof:
        list(prof.iter([0] * 4 for _ in range(9)))
    assert "creates whole batches" in trial_of(prof.result).not_measured["sample_times"]


def test_every_missing_figure_has_a_reason() -> None:
    with Profiler(warmup=0) as prof:
        list(prof.iter(Planted(5, 0.0)))
    trial = trial_of(prof.result)
    silent = {name for name, value in vars(trial).items() if value is None} - set(trial.not_measured)
    assert silent == {"failure", "freed", "isolation", "rank", "side", "slowest_rank"}


def test_the_trial_of_a_profile_has_the_consumer_of_its_run_measured_or_not() -> None:
    with Profiler(warmup=0) as measured:
        list(measured.iter(Planted(5, 0.0)))
    with Profiler() as empty:
        list(empty.iter([]))
    for prof, status in ((measured, "completed"), (empty, "failed")):
        trial = trial_of(prof.result)
        assert (trial.status, trial.consumer, prof.result.record.consumer) == (status, "loop", "loop")


def test_the_profiled_loader_is_the_loader_in_everything_else() -> None:
    dataset = TensorDataset(torch.arange(12))
    sampler: Any = DistributedSampler(dataset, num_replicas=1, rank=0)
    loader = DataLoader(dataset, batch_size=4, sampler=sampler)
    with Profiler() as prof:
        profiled = prof.iter(loader)
        assert len(profiled) == 3
        assert profiled.dataset is dataset
        profiled.sampler.set_epoch(3)
        profiled.note = "kept"
        assert (sampler.epoch, loader.note) == (3, "kept")  # type: ignore[attr-defined]
        assert [len(batch[0]) for batch in profiled] == [4, 4, 4]


def test_a_generator_has_no_length_and_says_so() -> None:
    with Profiler() as prof, pytest.raises(TypeError):
        len(prof.iter(iter([1])))


def test_memory_does_not_grow_with_the_length_of_a_loop() -> None:
    batch = (torch.zeros(2), torch.zeros(2))
    with Profiler(warmup=10) as prof:
        for _ in prof.iter(batch for _ in range(1_000)):
            pass
        tracemalloc.start()
        for _ in prof.iter(batch for _ in range(100_000)):
            pass
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak_bytes < 5_000_000
    assert any("longest wait of every" in note for note in prof.result.notes)


@pytest.mark.parametrize("steps", [None, 5])
def test_what_measuring_cost_is_known_when_the_loop_is_over_and_not_before(steps: int | None) -> None:
    """Measuring it takes thousands of batches, and events on a device: next to a training, it would be in the way."""
    with Profiler(warmup=2, steps=steps) as prof:
        for number, _ in enumerate(prof.iter([[0]] * 30)):
            if number == 20:
                (running,) = prof.result.trials
                assert prof.result.record.overhead is None
    assert (running.status, running.recorder_s_per_batch) == ("completed", None)
    assert running.not_measured["recorder_s_per_batch"] == AT_THE_END
    assert prof.result.trials[0].recorder_s_per_batch
    assert prof.result.record.overhead is not None


def test_the_result_says_what_measuring_cost() -> None:
    with Profiler(warmup=2) as prof:
        for _ in prof.iter(Planted()):
            pass
    overhead = prof.result.overhead
    assert 0 < overhead.per_batch_s < 1e-4
    assert 0 < overhead.share_of_wall < 0.05


def test_the_result_prints_draws_and_compares_itself(tmp_path: Path) -> None:
    results = []
    for _ in range(2):
        with Profiler("train", warmup=2) as prof:
            for _ in prof.iter(Planted()):
                pause(0.001)
        results.append(prof.result)
    result = results[0]
    assert result.verdict.bound == "input" or "other programs use CPUs that the loader needs" in result.verdict.headline
    assert "confidence): " in str(result)
    assert "confidence): " in result.to_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text().startswith("<!")
    assert result.to_dict()["kind"] == "profile"
    assert len(result.to_dataframe()) == 1
    assert {found.basis for found in result.recommendations} <= {"heuristic"}
    assert result.compare(results[1]).outcome == "inconclusive"
    assert "<script" not in result._repr_html_()
