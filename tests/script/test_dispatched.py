"""Ranks whose batches rank 0 loads, as with Accelerate's `dispatch_batches`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, ModuleType, SimpleNamespace
from typing import Any

import pytest
from recorded_loop import Loop, step_stages
from saved_recordings import recording_of
from scripts import HEAD, profile, write

from loaderbench.profiler.measured import Script
from loaderbench.records.words import SENT_BY_RANK_0
from loaderbench.result import load
from loaderbench.script.missing import HOME_OF_DISPATCHER, is_sent_batches, of_a_receiving_rank


class Dispatcher:
    """Begins an epoch of its loader in every rank, like Accelerate's."""

    def __init__(self, rank: int) -> None:
        self.state = SimpleNamespace(process_index=rank)

    def __iter__(self) -> Iterator[Any]:
        yield frame_of_an_epoch()


def frame_of_an_epoch() -> FrameType:
    return sys._getframe()


@pytest.fixture
def accelerate(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType(HOME_OF_DISPATCHER)
    module.DataLoaderDispatcher = Dispatcher  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, HOME_OF_DISPATCHER, module)


@pytest.mark.usefixtures("accelerate")
def test_only_other_ranks_than_0_are_sent_batches_and_only_by_the_dispatcher() -> None:
    asked = [is_sent_batches(frame) for rank in (0, 1, 3) for frame in Dispatcher(rank)]
    assert asked == [False, True, True]
    assert not is_sent_batches(frame_of_an_epoch())


def test_without_accelerate_no_rank_is_sent_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, HOME_OF_DISPATCHER, raising=False)
    assert not any(map(is_sent_batches, Dispatcher(1)))


def test_a_rank_that_took_batches_keeps_its_numbers() -> None:
    with step_stages() as stages:
        loop = Loop(stages)
        for _ in loop.epoch([1, 2, 3]):
            pass
        (trial,) = of_a_receiving_rank(recording_of(loop).measured).trials
        assert trial.status == "completed"
        assert trial.failure is None


def test_a_rank_without_batches_says_who_sends_them() -> None:
    with step_stages() as stages:
        loop = Loop(stages)
        loop.epoch([])
        measured, _ = loop.profiler.measured(Script("train.py", "train_loader"))
    (trial,) = of_a_receiving_rank(measured).trials
    assert trial.failure is not None
    assert trial.failure.message == trial.not_measured["data_wait_share"] == SENT_BY_RANK_0


TRAINING = (
    HEAD
    + """\
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration

if __name__ == "__main__":
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(dispatch_batches=True))
    for inputs, _ in accelerator.prepare(DataLoader(Slow(480), batch_size=8, num_workers=1)):
        accelerator.reduce(inputs)
"""
)


@pytest.mark.slow
def test_the_verdict_on_a_job_is_that_of_the_rank_that_loads(tmp_path: Path) -> None:
    pytest.importorskip("accelerate", reason="accelerate is not installed: uv sync --group frameworks")
    write(tmp_path, TRAINING)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = profile(tmp_path, "--out", "run", "--", *torchrun, "train.py")
    assert done.returncode == 0, done.stderr
    run = load(tmp_path / "run").record
    assert [one.not_measured.get("data_wait_share") for one in run.ranks] == [None, SENT_BY_RANK_0]
    assert run.ranks[1].verdict.headline == f"nothing was measured: {SENT_BY_RANK_0}"
    assert run.verdict.bound == run.ranks[0].verdict.bound == "input"
    assert "Ranks: rank 0 loads the batches of all 2 ranks; the others wait with it" in run.verdict.evidence
    assert not any("no batch was counted" in note for note in run.notes)
