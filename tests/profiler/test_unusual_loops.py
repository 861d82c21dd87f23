"""Loops and loaders of other kinds than torch's, and machines that cannot start a thread."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

import pytest
import torch
from loops import Numbers, trial_of
from torch.utils.data import DataLoader

from loaderbench import Profiler


def batches(prof: Profiler) -> int:
    return trial_of(prof.result).batches or 0


class OfItsOwn:
    """Has torch's names for other things."""

    multiprocessing_context, num_workers = "fork", "auto"

    def __iter__(self) -> Iterator[torch.Tensor]:
        return OfItsOwnBatches()


class OfItsOwnBatches:
    def __init__(self) -> None:
        self._workers = 4
        self._left = 40

    def __iter__(self) -> OfItsOwnBatches:
        return self

    def __next__(self) -> torch.Tensor:
        self._left -= 1
        if not self._left:
            raise StopIteration
        return torch.zeros(4, 2)


@pytest.mark.parametrize("trace", [False, True])
def test_a_loader_may_use_the_names_of_torch_s_for_other_things(trace: bool) -> None:
    with Profiler(trace=trace) as prof:
        assert sum(1 for _ in prof.iter(OfItsOwn())) == 39
    assert batches(prof) > 20


def test_batches_after_the_end_of_the_recording_are_not_counted_whenever_the_result_is_read() -> None:
    for more in (0, 10, 50):
        with Profiler(warmup=1) as prof:
            iterator = iter(prof.iter(torch.zeros(4, 2) for _ in range(60)))
            for _ in range(20):
                next(iterator)
        seen = 20 + sum(1 for _ in islice(iterator, more))
        assert batches(prof) == 18
        assert seen + sum(1 for _ in iterator) == 60


def test_an_epoch_that_has_not_begun_when_the_recording_ends_is_not_recorded() -> None:
    with Profiler(warmup=0) as prof:
        iterator = iter(prof.iter([torch.zeros(4, 2)] * 30))
    assert sum(1 for _ in iterator) == 30
    failure = trial_of(prof.result).failure
    assert failure is not None
    assert failure.kind == "no_batches"


def test_a_list_follows_a_loader_that_could_not_begin() -> None:
    def broken(_: Any) -> Any:
        raise OSError("unreadable")

    class Broken(DataLoader[Any]):
        __iter__ = broken

    with Profiler(trace=True) as prof:
        with pytest.raises(OSError, match="unreadable"):
            list(prof.iter(Broken(Numbers())))
        assert len(list(prof.iter([torch.zeros(4, 2)] * 30))) == 30
    assert batches(prof) > 10


def test_where_no_thread_can_be_started_the_loop_is_recorded_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fails)
    with Profiler(trace=True) as prof:
        for _ in range(2):
            assert len(list(prof.iter([torch.zeros(4, 2)] * 30))) == 30
    assert batches(prof) > 10


def test_every_value_that_a_profile_lacks_has_its_reason() -> None:
    with Profiler(trace=False) as prof:
        for _ in range(2):
            list(prof.iter(DataLoader(Numbers(), batch_size=4)))
    record = prof.result.record
    assert record.overhead is not None
    assert record.epoch_costs
    for part in (record.dataset, record.overhead, *record.epoch_costs):
        missing = {name for name, value in vars(part).items() if value is None}
        assert missing <= part.not_measured.keys(), type(part).__name__
    assert record.trials[0].epoch_ends is None


def test_what_a_loop_held_when_it_raised_is_freed_with_its_frame() -> None:
    held: list[weakref.ref[torch.Tensor]] = []

    def loop(prof: Profiler) -> None:
        for batch in prof.iter([torch.zeros(2, 3)] * 20):
            large = batch + 1
            held.append(weakref.ref(large))
            raise MemoryError("planted")

    prof = Profiler()
    with suppress(MemoryError), prof:
        loop(prof)
    assert held[0]() is None
    assert "the loop raised MemoryError: planted" in " ".join(prof.result.record.notes)


def test_leaving_a_generator_is_not_an_exception_of_the_loop() -> None:
    prof = Profiler()

    def batches() -> Iterator[torch.Tensor]:
        with prof:
            yield from prof.iter([torch.zeros(2, 3)] * 20)

    for _ in batches():
        break
    assert prof.result.record.complete
    assert not any("raised" in note for note in prof.result.record.notes)


def test_an_exception_without_words_passes_through() -> None:
    class Mute(Exception):  # noqa: N818 - a user's own
        def __str__(self) -> str:
            raise ValueError("no words")

    prof = Profiler()

    def loop() -> None:
        with prof:
            for _ in prof.iter([torch.zeros(2, 3)] * 20):
                raise Mute

    with pytest.raises(Mute):
        loop()
    assert "Mute" in " ".join(prof.result.record.notes)


def test_an_epoch_that_is_left_at_its_first_batch_starts_no_thread() -> None:
    def watching() -> set[str]:
        return {thread.name for thread in threading.enumerate() if thread.name.startswith("loaderbench")}

    loader = DataLoader(Numbers(64), batch_size=4)
    before = watching()
    with Profiler(trace=True) as prof:
        batches = iter(prof.iter(loader))
        next(batches)
        assert watching() == before
        next(batches)
        assert watching() > before


class Passing:
    def __init__(self, batches: Iterator[Any]) -> None:
        self.batches = batches

    def __iter__(self) -> Passing:
        return self

    def __next__(self) -> Any:
        return next(self.batches)


class Within(DataLoader[Any]):
    def _get_iterator(self) -> Any:
        return Passing(Passing(super()._get_iterator()))


def test_workers_of_an_iterator_within_others_are_found() -> None:
    with Profiler(warmup=2) as prof:
        for _ in prof.iter(Within(Numbers(800), batch_size=4, num_workers=2)):
            time.sleep(0.002)
    workers = trial_of(prof.result).workers
    assert workers is not None
    assert workers.count == 2
