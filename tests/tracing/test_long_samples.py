"""Rare long samples count with their full time, though few of them are traced, or none."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from fake_clock import FakeClock, fake_clock
from planted import Step, sleep
from torch.utils.data import DataLoader, IterableDataset

from loaderbench import Profiler
from loaderbench.recorder.inside import loader_inside
from loaderbench.records import LoaderInside, Trial
from loaderbench.tracing.block import BLOCK_BYTES, ENABLED, Block
from loaderbench.tracing.reading import NOTHING_TAKEN, read
from loaderbench.tracing.tracer import Tracer

USUAL_S, LONG_S = 30e-6, 0.01
BATCH = 20


class Loading:
    """A tracer on a clock that only moves when a sample says so."""

    def __init__(self, fake: FakeClock, **arguments: Any) -> None:
        self.block = Block(bytearray(BLOCK_BYTES))
        self.block.header[ENABLED] = 1.0
        self.tracer = Tracer(self.block, **arguments)
        self._own = fake.pass_s
        self._usual = self.tracer.timed(fake.pass_s, self.tracer.place("transform", "Usual"))
        self._rare = self.tracer.timed(fake.pass_s, self.tracer.place("transform", "Rare"))

    def sample(self, long_s: float, times: int = 1, *, in_transform: bool = True) -> None:
        """Pass the time of a usual sample, and then of what only a long one does."""
        for _ in range(times):
            self._usual(USUAL_S)
        (self._rare if in_transform else self._own)(long_s)

    def end_batch(self, number: int) -> None:
        """Complete a batch after every so many samples."""
        if number % BATCH == BATCH - 1:
            self.tracer.collate(list, [])

    def told(self) -> LoaderInside:
        """What a trial says about it."""
        self.tracer.flush()
        return loader_inside(read([self.block], None, NOTHING_TAKEN), lambda _: None)


def part_s(told: LoaderInside, name: str) -> float:
    assert told.stage_parts is not None
    return told.stage_parts[name].wall_s or 0.0


def check(told: LoaderInside, long_s: float) -> None:
    """Seconds per sample of the two parts, and of all stages."""
    assert part_s(told, "transform/Usual") == pytest.approx(USUAL_S, rel=0.01)
    assert part_s(told, "transform/Rare") == pytest.approx(long_s, rel=0.01)
    assert told.stages is not None
    whole_s = sum(cost.wall_s or 0.0 for stage, cost in told.stages.items() if stage != "collate")
    assert whole_s == pytest.approx(USUAL_S + long_s, rel=0.01)


def test_long_samples_are_scaled_by_their_time_and_usual_ones_by_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    loading, samples = Loading(fake_clock(monkeypatch)), 20_000
    planted_s = [LONG_S * (1 + number % 3) if number % 101 == 50 else 0.0 for number in range(samples)]
    for number, long_s in enumerate(planted_s):
        loading.tracer.sample(number, loading.sample, long_s)
        loading.end_batch(number)
    told = loading.told()
    check(told, sum(planted_s) / samples)
    assert told.stage_parts is not None
    assert "sample/untraced" not in told.stage_parts


def test_a_stretch_of_long_samples_counts_no_more_than_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    loading, samples = Loading(fake_clock(monkeypatch)), 10_000
    for number in range(samples):
        loading.tracer.sample(number, loading.sample, LONG_S if 4_000 <= number < 5_000 else 0.0)
        loading.end_batch(number)
    check(loading.told(), LONG_S / 10)


def test_a_long_first_sample_counts_no_more_than_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    loading, samples = Loading(fake_clock(monkeypatch)), 10_000
    for number in range(samples):
        loading.tracer.sample(number, loading.sample, 0.0 if number else 100 * LONG_S)
        loading.end_batch(number)
    check(loading.told(), 100 * LONG_S / samples)


def test_if_no_long_sample_was_traced_their_time_is_apart_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    loading, samples = Loading(fake_clock(monkeypatch)), 2_000
    for number in range(samples):
        loading.tracer.sample(number, loading.sample, LONG_S if number == 1_000 else 0.0)
        loading.end_batch(number)
    told = loading.told()
    assert part_s(told, "sample/untraced") == pytest.approx((LONG_S + USUAL_S) / samples, rel=0.01)
    assert part_s(told, "transform/Usual") == pytest.approx(USUAL_S, rel=0.01)
    assert told.stages is not None
    assert told.stages["sample"].wall_s == pytest.approx((LONG_S + USUAL_S) / samples, rel=0.01)
    assert told.sampled is not None
    assert told.sampled.endswith("; none was as long as 1 other, whose time is sample/untraced")


def test_much_longer_samples_are_not_divided_like_long_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    loading, samples, longest_s = Loading(fake_clock(monkeypatch)), 20_000, 0.5
    for number in range(samples):
        is_longest = number in (7_777, 15_555)
        long_s = longest_s if is_longest else LONG_S if number % 101 == 50 else 0.0
        loading.tracer.sample(number, functools.partial(loading.sample, in_transform=not is_longest), long_s)
        loading.end_batch(number)
    told = loading.told()
    assert part_s(told, "transform/Rare") == pytest.approx(LONG_S / 101, rel=0.02)
    assert part_s(told, "sample/untraced") == pytest.approx(2 * (longest_s + USUAL_S) / samples, rel=0.01)


def test_where_all_samples_are_traced_none_is_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    loading = Loading(fake_clock(monkeypatch), max_cost_share=1e9)
    for number in range(200):
        loading.tracer.sample(number, loading.sample, LONG_S if number % 100 == 50 else 0.0)
        loading.end_batch(number)
    told = loading.told()
    check(told, LONG_S / 100)
    assert told.sampled is None


def test_groups_with_a_long_sample_are_scaled_by_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    loading, groups = Loading(fake_clock(monkeypatch)), 8_000

    def load(indices: list[int]) -> None:
        is_long = indices[0] // BATCH % 101 == 50
        loading.sample(BATCH * LONG_S if is_long else 0.0, times=BATCH)

    for group in range(groups):
        loading.tracer.group(load, list(range(group * BATCH, (group + 1) * BATCH)))
        loading.tracer.collate(list, [])
    assert loading.told().sampled is not None
    check(loading.told(), LONG_S * len(range(50, groups, 101)) / groups)


def test_items_that_are_batches_are_scaled_by_their_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    loading, items = Loading(fake_clock(monkeypatch), count=lambda _: BATCH), 20_000
    for number in range(items):
        loading.tracer.sample(number, loading.sample, LONG_S if number % 101 == 50 else 0.0)
        loading.end_batch(number)
    told = loading.told()
    assert part_s(told, "transform/Usual") == pytest.approx(USUAL_S / BATCH, rel=0.01)
    assert part_s(told, "transform/Rare") == pytest.approx(
        LONG_S / BATCH * len(range(50, items, 101)) / items, rel=0.01
    )


def test_a_long_sample_of_a_batch_that_is_not_traced_is_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    loading = Loading(fake_clock(monkeypatch))
    for number in range(4 * BATCH):
        loading.tracer.sample(number, loading.sample, 0.0)
        loading.end_batch(number)
    batches_s = [0.0, LONG_S, 0.0]
    for long_s in batches_s:
        loading.tracer.count_left_out()
        loading.tracer.left_out(loading.sample(extra_s, BATCH) for extra_s in [long_s])
    told = loading.told()
    samples = (4 + len(batches_s)) * BATCH
    assert part_s(told, "sample/untraced") == pytest.approx(LONG_S / samples, rel=0.05)
    assert part_s(told, "transform/Usual") == pytest.approx(USUAL_S, rel=0.01)
    assert told.stage_parts
    assert told.stage_parts["sample/untraced"].cpu_s is None
    loading.tracer.left_out(loading.sample(extra_s, BATCH) for extra_s in [LONG_S])
    told = loading.told()
    assert told.stage_parts
    assert told.stage_parts["sample/untraced"].cpu_s is not None


class Shards(IterableDataset[Any]):
    """A stream in which one sample of many opens the next shard. Each carries its clocked seconds: rare, then usual."""

    samples, every, long_s = 12_000, 3_000, 0.3

    def __init__(self) -> None:
        self.transform = Usual(USUAL_S)

    def __iter__(self) -> Iterator[Any]:
        for number in range(self.samples):
            opened_s = sleep(self.long_s) if number % self.every == self.every // 2 else 0.0
            yield opened_s, self.transform({})["Usual"]


class Usual(Step):
    """A short transform of each sample."""


def profiled(loader: DataLoader[Any]) -> tuple[Trial, list[float]]:
    """The trial, and the planted seconds per sample."""
    planted_s = torch.zeros(2, dtype=torch.float64)
    with Profiler("train", trace=True, warmup=1) as prof:
        for opened_s, usual_s in prof.iter(loader):
            planted_s += torch.stack([opened_s.sum(), usual_s.sum()])
    (trial,) = prof.result.trials
    return trial, (planted_s / Shards.samples).tolist()


def attempts(is_right: Callable[[Trial, list[float]], bool], workers: int) -> tuple[Trial, list[float]]:
    """Profile until the result is right: another program may take the CPU for as long as a shard takes."""
    for _ in range(4):
        trial, planted_s = profiled(DataLoader(Shards(), batch_size=BATCH, num_workers=workers))
        if is_right(trial, planted_s):
            break
        time.sleep(0.3)
    return trial, planted_s


@pytest.mark.timed
@pytest.mark.parametrize("workers", [0, 1])
def test_the_time_of_rare_shards_is_in_the_sample_and_not_in_its_other_stages(workers: int) -> None:
    def ratios(trial: Trial, planted_s: list[float]) -> list[float]:
        assert trial.stages is not None
        found_s = [trial.stages[name].wall_s or 0.0 for name in ("sample", "transform")]
        return [found / planted for found, planted in zip(found_s, planted_s, strict=True)]

    def is_right(trial: Trial, planted_s: list[float]) -> bool:
        """Delays by other programs are long samples as well, so they are in the sample instead of the transform."""
        in_sample, in_transform = ratios(trial, planted_s)
        return 0.8 < in_sample < 1.5 and 0.4 < in_transform < 1.5

    assert is_right(*(found := attempts(is_right, workers))), ratios(*found)
