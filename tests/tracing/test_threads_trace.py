"""What happens in a loader's threads is shown by stage and by thread, and nothing of the user's stays changed."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import PIL.Image
import pytest
from followed_batches import Followed
from planted import Batched, Files, FolderStyle, Raises, Slotted, Step, sleep

from loaderbench.loaders.thread_workers import LoadingThreads
from loaderbench.tracing import active
from loaderbench.tracing.made import Made
from loaderbench.tracing.reading import Traced
from loaderbench.tracing.threads import ThreadsTrace

SIZE, THREADS = 4, 2


@dataclass
class Seen:
    """The batches of an epoch in order, who made each, and what was traced."""

    batches: list[Any] = field(default_factory=list)
    made: list[Made | None] = field(default_factory=list)
    made_last: list[tuple[int, Made]] = field(default_factory=list)
    traced: Traced | None = None

    def stages(self) -> set[tuple[str, str]]:
        assert self.traced is not None
        return set(self.traced.parts)


@contextmanager
def threads_of(dataset: Any) -> Iterator[LoadingThreads]:
    threads = LoadingThreads(THREADS, dataset)
    try:
        yield threads
    finally:
        threads.end()


def batches_of(threads: LoadingThreads, numbers: Sequence[Sequence[int]]) -> Iterator[Any]:
    threads.start()
    for made in [threads.pool.submit(threads.make, batch) for batch in numbers]:
        yield made.result()


def traced(dataset: Any, samples: int) -> Seen:
    """One epoch, in batches of `SIZE`, made by two threads."""
    numbers, seen = [range(first, first + SIZE) for first in range(0, samples, SIZE)], Seen()
    with threads_of(dataset) as threads:
        trace = ThreadsTrace(batches_of(threads, numbers), threads)
        seen.batches += trace.batches()
        threads.end()  # what was counted is complete then
        seen.made += [trace.made(0, batch) for batch in range(len(numbers))]
        seen.made_last, seen.traced = trace.made_last(), trace.read()
    return seen


class Straggling(FolderStyle):
    def __getitem__(self, index: int) -> dict[str, float]:
        return {"sample": sleep(0.2 if index == 13 else 0.001)}


class WithFiles(Files):
    """As a folder of images: a decoder and a transform are attributes."""

    def __init__(self, paths: list[str]) -> None:
        super().__init__(paths)
        self.transform = Step(0.006, sleep)  # of samples that long all are traced

    def __getitem__(self, index: int) -> tuple[Any, int]:
        self.transform({})
        return super().__getitem__(index)


def test_each_stage_is_counted_in_every_thread() -> None:
    seen = traced(FolderStyle(), 24)
    assert seen.traced is not None
    assert (seen.traced.samples, seen.traced.traced, seen.traced.batches) == (24, 24, 6)
    assert seen.stages() >= {("decode", "loader"), ("transform", "First"), ("transform", "Second"), ("collate", "")}
    calls = {name: total.calls for name, total in seen.traced.parts.items()}
    assert (calls["decode", "loader"], calls["transform", "First"], calls["collate", ""]) == (24, 24, 6)
    assert {made.worker for made in seen.made if made} == {0, 1}


def test_a_batch_s_stages_take_what_its_own_code_clocked() -> None:
    seen = traced(FolderStyle(), 24)
    for batch, made in zip(seen.batches, seen.made, strict=True):
        assert made is not None
        assert made.samples == SIZE
        for stage, names in (("decode", ("decode",)), ("transform", ("First", "Second"))):
            planted_s = sum(float(batch[name].sum()) for name in names)
            assert planted_s <= made.stages_s[stage] <= made.ended_s - made.began_s


def test_each_batch_is_found_with_the_thread_that_made_it() -> None:
    seen = traced(Straggling(), 24)
    made = [one for one in seen.made if one]
    assert seen.made_last == list(enumerate(made))
    assert len(made) == 6
    assert max(range(6), key=lambda batch: made[batch].ended_s - made[batch].began_s) == 13 // SIZE
    for thread in range(THREADS):
        own = sorted((one.began_s, one.ended_s) for one in made if one.worker == thread)
        assert all(ended_s <= began_s for (_, ended_s), (began_s, _) in pairwise(own))


def test_reading_and_decoding_are_seen_inside_an_opaque_dataset(photos: Path) -> None:
    paths = sorted(map(str, photos.rglob("*.jpg")))[:8]
    seen = traced(WithFiles(paths), 8)
    assert seen.traced is not None
    assert {stage for stage, _ in seen.stages()} >= {"read", "decode", "transform", "collate"}
    assert seen.traced.reads.samples == 8
    assert seen.traced.reads.bytes >= sum(Path(path).stat().st_size for path in paths)
    assert {slow.path for slow in seen.traced.slowest} == set(paths)


def test_samples_made_in_one_call_are_counted() -> None:
    seen = traced(Batched(), 24)
    assert seen.traced is not None
    assert (seen.traced.samples, seen.traced.batches) == (24, 6)
    assert ("decode", "loader") in seen.stages()


@pytest.mark.parametrize("dataset", [Slotted(24), [{"sample": 1.0}] * 24], ids=["slots", "a list"])
def test_a_dataset_of_any_class_is_counted(dataset: Any) -> None:
    seen = traced(dataset, 24)
    assert seen.traced is not None
    assert seen.traced.samples == 24


def test_an_error_in_a_thread_reaches_the_consumer_and_ends_the_trace() -> None:
    first, failing, last = (range(begin, begin + SIZE) for begin in (0, 8, 16))  # sample 11 raises
    dataset = Raises()
    with threads_of(dataset) as threads:
        trace = ThreadsTrace(batches_of(threads, [first, failing, last]), threads)
        batches = trace.batches()
        assert len(next(batches)["sample"]) == SIZE
        with pytest.raises(ValueError, match="planted"):
            next(batches)
        assert type(dataset) is Raises
        threads.end()
        found = trace.read()
    assert found.parts["decode", "loader"].calls >= SIZE
    assert found.batches >= 1  # the last one may be made after the trace has ended


def test_everything_is_as_before_once_the_batches_end() -> None:
    dataset = FolderStyle()
    before = (type(dataset), dict(vars(dataset)), builtins.open, PIL.Image.open, active.tracer())
    with threads_of(dataset) as threads:
        trace = ThreadsTrace(batches_of(threads, [range(SIZE)] * 3), threads)
        with closing(trace.batches()) as batches:  # type: ignore[type-var]
            assert len(list(islice(batches, 1))) == 1
            assert builtins.open is not before[2]
    vars(dataset)["made"] = 0
    assert (type(dataset), dict(vars(dataset)), builtins.open, PIL.Image.open, active.tracer()) == before
    assert dataset.samples == FolderStyle().samples


def test_a_batch_that_the_loop_drops_is_freed_before_the_next_one_is_asked_for() -> None:
    source = Followed(5)
    with threads_of(FolderStyle()) as threads:
        trace = ThreadsTrace(iter(source), threads)
        for batch in trace.batches():
            del batch
    assert source.freed == [True] * 5
