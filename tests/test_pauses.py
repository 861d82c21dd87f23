"""All processes of a run are stopped for a while, as by the lid of a laptop or a container's pause."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from test_small_machine import SUITE, TARGETS

from loaderbench.store import read_run, readable_trials

PAUSE_S = 5.0


@pytest.mark.slow
def test_a_trial_that_was_paused_is_measured_again(tmp_path: Path) -> None:
    (tmp_path / "lb_small.py").write_text(TARGETS)
    suite = SUITE.format(batches="[4]", rounds=2).replace("seconds: 0.1", "seconds: 2")
    (tmp_path / "s.yaml").write_text(suite.replace("lb_small:samples", "lb_small:waiting"))
    command = [sys.executable, "-m", "loaderbench", "run", "s.yaml", "-q", "--out", "r"]
    running = psutil.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL)
    while running.poll() is None and not _is_measuring(tmp_path / "r"):
        time.sleep(0.05)
    time.sleep(1.0)
    processes = [running, *running.children(recursive=True)]
    for process in processes:
        with suppress(psutil.Error):
            process.suspend()
    time.sleep(PAUSE_S)
    for process in processes:
        with suppress(psutil.Error):
            process.resume()

    assert running.wait(120) == 0
    run = read_run(tmp_path / "r")
    assert [trial.status for trial in run.sweep] == ["completed"] * 4
    waits_s = [trial.data_wait.max_s for trial in run.sweep if trial.data_wait]
    assert waits_s
    assert max(waits_s) < PAUSE_S, "a pause was measured as a data wait"


def _is_measuring(folder: Path) -> bool:
    return (folder / "trials.jsonl").exists() and len(readable_trials(folder)[0]) > 0
