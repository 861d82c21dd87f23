"""Recordings travel from other machines to that of rank 0, through a real store of torch."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import distributed

from loaderbench.recorder.steps import StepTimes
from loaderbench.records import Readings
from loaderbench.script import hosts
from loaderbench.script.hosts import Machines, begin_attempt, exchange, find_machines
from loaderbench.script.recording import SENT, Recording, read_recordings

TORCHRUN = {
    "RANK": "2", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "1",
    "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500", "TORCHELASTIC_USE_AGENT_STORE": "True",
}  # fmt: skip


@pytest.fixture
def store() -> Any:
    """The one that torchrun's agent keeps."""
    return vars(distributed)["TCPStore"]("127.0.0.1", 0, is_master=True, wait_for_workers=False)


def recording(rank: int, steps: int = 10) -> Recording:
    times = np.random.default_rng(rank).random((steps, 3))
    keys = np.zeros((steps, 2), dtype=np.int64)
    nothing: Any = None
    return Recording(
        name="loader",
        place="train.py:1",
        rank=rank,
        measured=nothing,
        readings=Readings(),
        steps=StepTimes(keys, times),
    )


def machines(rank: int, store: Any, world_size: int = 4) -> Machines:
    return Machines(rank, world_size, 2, "127.0.0.1", store.port, is_first=rank < 2)


def test_rank_0_has_what_the_other_machines_sent(store: Any, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    said: list[str] = []
    receiver = threading.Thread(target=lambda: said.append(exchange(machines(0, store), [recording(0)], first)))
    receiver.start()
    assert exchange(machines(1, store), [recording(1)], first) == ""
    assert exchange(machines(2, store), [recording(2)], second) == ""
    assert exchange(machines(3, store), [recording(3, 200_000)], second) == ""  # more than one chunk
    receiver.join(30)
    assert said == [""]
    found = read_recordings(first)
    assert [one.rank for one in found] == [2, 3]
    assert [len(one.steps.times_s) for one in found if one.steps] == [10, 200_000]
    assert (second / SENT).read_text() == "127.0.0.1"
    assert not (first / SENT).exists()


def test_a_second_training_of_a_script_is_not_mixed_with_its_first(store: Any, tmp_path: Path) -> None:
    second = tmp_path / "second"
    second.mkdir()
    for number, steps in enumerate((10, 20)):
        exchange(machines(2, store, 3), [recording(2, steps)], second, number)
    for number, steps in enumerate((10, 20)):
        first = tmp_path / f"first{number}"
        first.mkdir()
        assert exchange(machines(0, store, 3), [], first, number) == ""
        assert [len(one.steps.times_s) for one in read_recordings(first) if one.steps] == [steps]


def test_what_ranks_sent_before_a_restart_is_not_taken_for_theirs(store: Any, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    for steps in (10, 20):  # rank 0 of the first attempt is killed
        for rank in (0, 1, 2):
            begin_attempt(machines(rank, store, 3))
        begins = threading.Timer(0.5, exchange, [machines(2, store, 3), [recording(2, steps)], second])
        begins.start()
        if steps == 10:
            begins.join()
    assert exchange(machines(0, store, 3), [], first) == ""
    begins.join()
    assert [len(one.steps.times_s) for one in read_recordings(first) if one.steps] == [20]


def test_a_rank_that_sends_nothing_is_named(store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts, "WAIT_S", 1.0)
    exchange(machines(3, store), [recording(3)], tmp_path / "..")
    (tmp_path.parent / SENT).unlink()
    assert exchange(machines(0, store), [], tmp_path) == "no data from rank 2; the report excludes it"
    assert [one.rank for one in read_recordings(tmp_path)] == [3]


def test_another_version_is_not_read(store: Any, tmp_path: Path) -> None:
    store.set("loaderbench/0/0/2", "1 0.0.1")
    said = exchange(machines(0, store, 3), [], tmp_path)
    assert said.startswith("rank 2 has loaderbench 0.0.1, rank 0 ")
    assert said.endswith(": install the same version")
    assert read_recordings(tmp_path) == []


def test_several_machines_are_found_by_what_torchrun_says(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in TORCHRUN.items():
        monkeypatch.setenv(name, value)
    assert find_machines(alone=True) == Machines(2, 4, 1, "10.0.0.1", 29500, is_first=False)
    found = find_machines(alone=False)
    assert found == Machines(2, 4, 2, "10.0.0.1", 29500, is_first=False)
    assert list(found.other_ranks) == [2, 3]


def test_machines_may_have_different_numbers_of_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rank 1 is the first of two on the second machine; rank 0 is alone on its own."""
    two = {"RANK": "1", "WORLD_SIZE": "3", "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "1"}
    one = {"RANK": "0", "WORLD_SIZE": "3", "LOCAL_WORLD_SIZE": "1", "GROUP_RANK": "0"}
    for changes, is_first in ((two, False), (one, True)):
        for name, value in {**TORCHRUN, **changes}.items():
            monkeypatch.setenv(name, value)
        found = find_machines(alone=False)
        assert found is not None
        assert found.is_first is is_first
    assert list(found.other_ranks) == [1, 2]


@pytest.mark.parametrize(
    ("name", "value"), [("LOCAL_WORLD_SIZE", "4"), ("TORCHELASTIC_USE_AGENT_STORE", "False"), ("RANK", "")]
)
def test_one_machine_or_another_launcher_exchanges_nothing(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for known, usual in {**TORCHRUN, name: value}.items():
        monkeypatch.setenv(known, usual)
    assert find_machines(alone=False) is None
