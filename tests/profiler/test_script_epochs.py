"""Epochs of a script's own loaders: its state, workers, errors and iterators are its own."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

import pytest
import torch
from listed import Listed, NewRecorder
from torch.utils.data import DataLoader, IterableDataset

from loaderbench.script.recorder import ScriptRecorder
from loaderbench.script.recording import read_recordings
from loaderbench.tracing.block import ENABLED
from loaderbench.tracing.loader import LoaderTrace

pytestmark = pytest.mark.usefixtures("without_collector")


def test_the_user_s_own_dictionary_of_variables_stays_as_it_was(new_recorder: NewRecorder) -> None:
    def run(rate: float = 0.1) -> dict[str, Any]:
        arguments = locals()
        arguments["rate"] = 0.2
        loader = DataLoader(Listed(), batch_size=4)
        for _ in script.epoch(loader):
            break
        return {name: value for name, value in arguments.items() if value is not script}

    script = new_recorder()
    assert run() == {"rate": 0.2}


def test_what_exec_has_put_among_the_variables_stays(new_recorder: NewRecorder) -> None:
    script = new_recorder()
    exec("rate = 0.1")
    loader = DataLoader(Listed(), batch_size=4)
    list(script.epoch(loader))
    assert eval("rate") == 0.1


class Prefetched(IterableDataset[Any]):
    """Takes batches of another loader in a thread, and waits for the first one before its own epoch begins."""

    def __init__(self, take: Callable[[], Iterator[Any]]) -> None:
        self.take = take

    def __iter__(self) -> Iterator[Any]:
        taken: Queue[Any] = Queue()

        def fill() -> None:
            for batch in self.take():
                taken.put(batch)
            taken.put(None)

        Thread(target=fill, daemon=True).start()
        return chain([taken.get(timeout=20)], iter(taken.get, None))


def test_an_epoch_may_wait_for_one_of_another_thread_before_it_begins(new_recorder: NewRecorder) -> None:
    script = new_recorder()
    inner = DataLoader(Listed(), batch_size=4)
    outer = DataLoader(Prefetched(lambda: script.epoch(inner)), batch_size=None)
    assert len(list(script.epoch(outer))) == len(inner)


def test_what_a_script_did_to_its_own_state_does_not_keep_it_from_being_saved(
    tmp_path: Path, new_recorder: NewRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, gone = new_recorder(), tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    list(script.epoch(DataLoader(Listed(), batch_size=4)))
    gone.rmdir()
    monkeypatch.setattr(sys, "argv", [])
    script.finish()
    assert len(read_recordings(tmp_path)) == 1


def test_workers_that_persist_are_the_loader_s_own(new_recorder: NewRecorder) -> None:
    loader = DataLoader(Listed(), batch_size=4, num_workers=1, persistent_workers=True)
    script = new_recorder()
    pids = []
    for _ in range(2):
        list(script.epoch(loader))
        pids.append([worker.pid for worker in loader._iterator._workers])  # type: ignore[union-attr]
    script.finish()
    list(loader)
    pids.append([worker.pid for worker in loader._iterator._workers])  # type: ignore[union-attr]
    assert pids == [pids[0]] * 3
    loader._iterator = None  # as for a dataset that has changed
    list(new_recorder().epoch(loader))
    assert loader._iterator is not None
    assert [worker.pid for worker in loader._iterator._workers] != pids[0]


def test_two_loaders_in_turn_keep_their_workers(new_recorder: NewRecorder) -> None:
    script = new_recorder()
    loaders = [DataLoader(Listed(), batch_size=4, num_workers=1, persistent_workers=True) for _ in range(2)]
    pids = []
    for _ in range(2):
        for loader in loaders:
            list(script.epoch(loader))
            pids.append(loader._iterator._workers[0].pid)  # type: ignore[union-attr]
    assert pids == pids[:2] * 2


def test_an_error_of_the_loader_that_the_script_catches_ends_no_epoch(new_recorder: NewRecorder) -> None:
    """Torch continues with the next batch."""

    class Broken(Listed):
        def __getitem__(self, index: int) -> torch.Tensor:
            if index == 5:
                raise OSError("unreadable")
            return super().__getitem__(index)

    batches, taken, failed = new_recorder().epoch(DataLoader(Broken(), batch_size=4)), 0, 0
    while True:
        try:
            next(batches)
            taken += 1
        except StopIteration:
            break
        except OSError:
            failed += 1
    assert (taken, failed) == (15, 1)


def test_attributes_of_an_iterator_can_be_set(new_recorder: NewRecorder) -> None:
    batches: Any = new_recorder().epoch(DataLoader(Listed(), batch_size=4))
    batches.note = "mine"
    assert batches.note == "mine"


def test_a_loader_without_a_hash_or_a_place_is_still_iterated_over(new_recorder: NewRecorder, monkeypatch: Any) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("no place")

    monkeypatch.setattr("loaderbench.script.recorder.place_of", fails)
    assert len(list(new_recorder().epoch(DataLoader(Listed(), batch_size=4)))) == 16


def is_traced(script: ScriptRecorder) -> bool:
    (recorded,) = script._recorded
    trace = recorded.profiler._observer.trace
    assert isinstance(trace, LoaderTrace)
    return not recorded.profiler.is_over or trace.blocks[0].header[ENABLED] != 0


def test_after_its_seconds_nothing_is_traced_any_more(new_recorder: NewRecorder) -> None:
    script = new_recorder()
    for number, _ in enumerate(script.epoch(DataLoader(Listed(), batch_size=1))):
        if number == 5:
            script._recorded[0].profiler._until_s = 0.0
        if number >= 5 and is_traced(script):
            time.sleep(0.05)  # until the next look at the clock is due
    assert (number, is_traced(script)) == (63, False)


def test_nor_where_they_pass_between_two_epochs(new_recorder: NewRecorder) -> None:
    script, loader = new_recorder(), DataLoader(Listed(), batch_size=1)
    list(script.epoch(loader))
    assert is_traced(script)
    script._until_s = 0.0
    assert len(list(script.epoch(loader))) == 64
    assert not is_traced(script)
