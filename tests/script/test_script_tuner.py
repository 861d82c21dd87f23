"""When a script's loader is tuned, and that what goes wrong in it is not the script's own error."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from loaderbench.script.divided_steps import DividedSteps
from loaderbench.script.naming import Makers
from loaderbench.script.order import RecordOrder
from loaderbench.script.recorded_epoch import ClockedEpoch
from loaderbench.script.step_stages import StepStages
from loaderbench.script.tuner import SETTLED_BATCHES, ScriptTuner, read_tuned


def tuner(place: Path, *, keep_training: bool = True) -> ScriptTuner:
    order = RecordOrder(folder=str(place), python_path=None, tune_s=10.0, keep_training=keep_training)
    return ScriptTuner(order, Makers())


def nothing() -> None:
    """Where there is nothing to save."""


def loop(batches: int = SETTLED_BATCHES) -> Any:
    """A profiler that fails where it is asked for what it measured: tuning has begun."""

    def measured(_: Any) -> None:
        raise RuntimeError("planted")

    return SimpleNamespace(steady_batches=batches, name="train_loader", source=None, end=nothing, measured=measured)


def steps(*, trains: bool, calls_model: bool, waits: bool = False) -> Any:
    """The steps of a loop; `waits`: for another loader."""
    return SimpleNamespace(optimizes=trains, calls_model=calls_model, other_waits=SimpleNamespace(are_for_others=waits))


def test_a_loop_that_waits_for_another_loader_leaves_that_one_time_to_settle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = tuner(tmp_path)
    found.consider(loop(), steps(trains=True, calls_model=True, waits=True), save=nothing)
    assert not found.is_done
    monkeypatch.setattr("loaderbench.script.tuner.LONG_PATIENCE_S", 0.0)
    found.consider(loop(), steps(trains=True, calls_model=True, waits=True), save=nothing)
    assert found.is_done


def test_a_loop_that_has_not_settled_or_does_not_train_waits(tmp_path: Path) -> None:
    found = tuner(tmp_path)
    found.consider(loop(SETTLED_BATCHES - 1), steps(trains=True, calls_model=True), save=nothing)
    found.consider(loop(), steps(trains=False, calls_model=True), save=nothing)
    with torch.no_grad():
        found.consider(loop(), steps(trains=True, calls_model=True), save=nothing)
    assert not found.is_done


def test_a_loop_without_an_optimizer_is_tuned_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = tuner(tmp_path)
    monkeypatch.setattr("loaderbench.script.tuner.PATIENCE_S", 0.0)
    found.consider(loop(), steps(trains=False, calls_model=True), save=nothing)
    assert found.is_done


def test_a_loop_that_calls_no_module_may_compute_statistics_and_is_waited_for_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = tuner(tmp_path)
    monkeypatch.setattr("loaderbench.script.tuner.PATIENCE_S", 0.0)
    found.consider(loop(), steps(trains=False, calls_model=False), save=nothing)
    assert (found.is_done, capsys.readouterr().err) == (False, "")
    monkeypatch.setattr("loaderbench.script.tuner.LONG_PATIENCE_S", 0.0)
    found.consider(loop(), steps(trains=False, calls_model=False), save=nothing)
    assert found.is_done
    said, *_ = capsys.readouterr().err.splitlines()
    assert said == "loaderbench: no optimizer step seen; treating the loop over train_loader as training"


def test_what_goes_wrong_is_a_line_and_happens_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = tuner(tmp_path)
    for _ in range(2):
        found.consider(loop(), steps(trains=True, calls_model=True), save=nothing)
    said = capsys.readouterr().err.splitlines()
    assert said == ["loaderbench: cannot tune train_loader: RuntimeError: planted"]
    assert read_tuned(tmp_path) is None


def test_the_script_ends_all_the_same_unless_it_is_to_go_on(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        tuner(tmp_path, keep_training=False).consider(loop(), steps(trains=True, calls_model=True), save=nothing)
    assert ended.value.code == 0


def test_a_loop_of_several_ranks_is_tuned_only_where_an_optimizer_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its own clock, one rank would wait for the others while these wait for it in a collective."""
    found = tuner(tmp_path)
    monkeypatch.setattr("loaderbench.script.tuner.PATIENCE_S", 0.0)
    monkeypatch.setattr("loaderbench.script.tuner.rank_of_training", lambda: 1)
    found.consider(loop(), steps(trains=False, calls_model=True), save=nothing)
    assert not found.is_done


def test_a_script_that_catches_its_end_gets_it_again_with_every_batch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = tuner(tmp_path, keep_training=False)
    found.check_ended()

    def batches() -> Iterator[int]:
        found.consider(loop(), steps(trains=True, calls_model=True), save=nothing)
        yield 1

    of_loop = DividedSteps(StepStages(watches_optimizers=False), None)  # type: ignore[arg-type]
    epoch = ClockedEpoch(batches(), iter([2, 3]), of_loop, deque(), None)
    for _ in range(3):
        with pytest.raises(SystemExit):
            next(epoch)
    with pytest.raises(SystemExit) as ended:
        found.check_ended()
    assert ended.value.code == 0
    assert capsys.readouterr().err.count("the script continues after the exit that follows tuning") == 1


def test_another_thread_is_not_ended(tmp_path: Path) -> None:
    found, raised = tuner(tmp_path, keep_training=False), list[BaseException]()
    with pytest.raises(SystemExit):
        found.consider(loop(), steps(trains=True, calls_model=True), save=nothing)

    def ask() -> None:
        try:
            found.check_ended()
        except SystemExit as end:
            raised.append(end)

    thread = Thread(target=ask)
    thread.start()
    thread.join()
    assert raised == []
