"""What is saved of a script while it runs costs its loop little."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from recorded_loop import Loop, step_stages
from saved_recordings import recording_of, trial_of
from torch.utils.data import DataLoader

from loaderbench.own_threads import OwnThread
from loaderbench.profiler.readings import AT_THE_END
from loaderbench.records import Trial
from loaderbench.script import recorder
from loaderbench.script.naming import Makers
from loaderbench.script.order import RecordOrder
from loaderbench.script.recording import Recording, read_recordings


def made(folder: Path) -> recorder.ScriptRecorder:
    order = RecordOrder(folder=str(folder), python_path=None)
    return recorder.ScriptRecorder(order, DataLoader.__iter__, lambda: None, Makers())


def saving_threads() -> list[OwnThread]:
    every = [thread for thread in threading.enumerate() if isinstance(thread, OwnThread)]
    return [thread for thread in every if thread.name == "loaderbench-saving"]


@pytest.fixture(scope="module")
def trials() -> tuple[Trial, Trial]:
    """Saved in the middle of a loop, and at its end."""
    with step_stages() as stages:
        loop, saved = Loop(stages), []
        for number, _ in enumerate(loop.epoch([torch.zeros(4, 2)] * 30)):
            saved += [recording_of(loop)] if number == 20 else []
        loop.profiler.end()
        return trial_of(saved[0]), trial_of(recording_of(loop, has_ended=True))


def test_what_recording_costs_is_measured_when_the_script_has_ended(trials: tuple[Trial, Trial]) -> None:
    """It takes thousands of events on the device that the script computes on."""
    running, ended = trials
    assert running.recorder_s_per_batch is None
    assert running.not_measured["recorder_s_per_batch"] == AT_THE_END
    assert 0 < (ended.recorder_s_per_batch or 0) < 1e-3
    assert "recorder_s_per_batch" not in ended.not_measured


def test_all_else_is_there_while_the_script_runs(trials: tuple[Trial, Trial]) -> None:
    running, _ = trials
    assert running.status == "completed"
    assert running.batches == 10
    assert running.samples_per_s


def test_a_save_makes_way_for_the_loop_and_the_last_one_measures_the_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: list[tuple[float, bool, bool]] = []

    def write(_: Path, recordings: Sequence[Recording]) -> None:
        cost_s = trial_of(recordings[0]).recorder_s_per_batch
        saved.append((round(sys.getswitchinterval(), 6), cost_s is not None, recordings[0].has_ended))

    monkeypatch.setattr(recorder, "write_recordings", write)
    usual_s, script = sys.getswitchinterval(), made(tmp_path)
    for number, _ in enumerate(script.epoch(DataLoader(torch.zeros(120, 2), batch_size=4))):
        if number == 20:
            script._save()
    script.finish()
    assert [found[1:] for found in saved] == [(False, False), (True, True)]
    assert all(interval_s <= recorder.SWITCH_S for interval_s, _, _ in saved)
    assert sys.getswitchinterval() == usual_s


def test_a_script_without_an_epoch_imports_nothing_when_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported: list[str] = []
    monkeypatch.setattr(recorder, "import_module", imported.append)
    made(tmp_path).finish()
    for thread in saving_threads():
        thread.wait(10)
    assert (imported, saving_threads()) == ([], [])


def test_while_a_loader_is_tuned_nothing_is_saved_and_a_copy_can_be_forked_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fork comes from another thread, which must not wait for a lock of this one."""
    saved, during, free = [0], list[int](), list[bool]()

    def write(*_: object) -> None:
        saved[0] += 1

    def try_to_fork() -> None:
        free.append(recorder._saving.acquire(timeout=5))
        if free[-1]:
            recorder._saving.release()

    class Tuner:
        is_done = False

        def check_ended(self) -> None:
            """The script was not ended."""

        def consider(self, *_: object, **__: object) -> None:
            before, thread = saved[0], threading.Thread(target=try_to_fork)
            thread.start()
            thread.join()
            time.sleep(0.2)  # the thread that saves would do so twenty times
            during.append(saved[0] - before)
            self.is_done = True

    monkeypatch.setattr(recorder, "write_recordings", write)
    monkeypatch.setattr(recorder, "FIRST_SAVE_S", 0.01)
    order = RecordOrder(folder=str(tmp_path), python_path=None, longest_save_s=0.01)
    script = recorder.ScriptRecorder(order, DataLoader.__iter__, lambda: None, Makers())
    monkeypatch.setattr(script, "_tuner", Tuner())
    for _ in script.epoch(DataLoader(torch.zeros(40, 2), batch_size=4)):
        time.sleep(0.02)
    script.finish()
    assert (free, during) == ([True], [0])
    assert saved[0] > 1


def test_each_attempt_of_a_restarted_job_is_a_training_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = []
    for count in ("0", "1"):
        folder = tmp_path / count
        folder.mkdir()
        monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", count)
        own = made(folder)
        for _ in own.epoch(DataLoader(list(range(40)), batch_size=2)):  # type: ignore[arg-type]
            pass
        own.finish()
        places += [one.place for one in read_recordings(folder)]
    assert places[1] == f"{places[0]}, restart 1"
