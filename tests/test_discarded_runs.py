"""A run that could not begin leaves no folder behind, and one that has trials can be resumed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from loaderbench.errors import UsageError
from loaderbench.records import Trial
from loaderbench.store import Store, readable_trials

DONE = Trial(role="sweep", id="r1-c00", config={"num_workers": 0}, round=1, status="completed", samples_per_s=100.0)


def test_a_discarded_run_with_trials_can_be_resumed(tmp_path: Path) -> None:
    store = Store(tmp_path / "run")
    store.append(DONE)
    store.discard()
    Store(tmp_path / "run", again=True).close()
    assert readable_trials(tmp_path / "run")[0] == [DONE]


def test_a_run_whose_folder_was_deleted_is_discarded_without_a_second_error(tmp_path: Path) -> None:
    store = Store(tmp_path / "run")
    shutil.rmtree(tmp_path / "run")
    with pytest.raises(UsageError, match="cannot write: No such file or directory"):
        store.write_run(DONE)  # type: ignore[arg-type]
    store.discard()
    assert not (tmp_path / "run").exists()


def test_a_folder_that_was_there_before_stays(tmp_path: Path) -> None:
    Store(tmp_path).discard()
    assert list(tmp_path.iterdir()) == []


def test_an_unused_folder_is_taken_away_and_a_used_one_stays(tmp_path: Path) -> None:
    unused, used = Store(tmp_path / "unused"), Store(tmp_path / "used")
    unused.discard()
    used.append(DONE)
    used.discard()
    assert not (tmp_path / "unused").exists()
    assert (tmp_path / "used" / "trials.jsonl").stat().st_size
