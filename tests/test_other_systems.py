"""Other systems than Linux, as far as an interpreter on Linux can be made to look like one.

`other_system/sitecustomize.py` takes away what Windows and macOS do not have; a mount hides `/proc`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_small_machine import RUN, SUITE, TARGETS, mounts, shell

from loaderbench.records import RunRecord
from loaderbench.store import read_run

ROOT = Path(__file__).parents[1]
OTHER = ROOT / "tests" / "other_system"
EVERYTHING = """
import importlib, pathlib, sys
root = pathlib.Path(sys.argv[1])
for path in sorted((root / "loaderbench").rglob("*.py")):
    name = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
    if not name.endswith("__main__") and ".integrations." not in name:  # those import a framework
        try:
            importlib.import_module(name)
        except ImportError as error:  # also of a package whose folder an uninstalled one left behind
            if (error.name or "").partition(".")[0] not in ("litdata", "streaming", "nvidia"):  # imported by one module
                raise
"""


@pytest.mark.slow
def test_every_module_can_be_imported() -> None:
    environment = {**os.environ, "PYTHONPATH": str(OTHER)}
    command = [sys.executable, "-c", EVERYTHING, str(ROOT)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def run_without_proc(folder: Path, *, environment: str = "") -> RunRecord:
    (folder / "lb_small.py").write_text(TARGETS)
    (folder / "s.yaml").write_text(SUITE.format(batches="[4]", rounds=1).replace("[0, 2]", "[0, 1]"))
    done = shell(folder, f"mount -t tmpfs -o ro tmpfs /proc && {environment} {RUN} --out r", apart=True)
    assert done.returncode == 0, done.stderr
    return read_run(folder / "r")


@pytest.mark.slow
@mounts
def test_a_run_measures_with_spawn_and_says_why_the_rest_is_missing(tmp_path: Path) -> None:
    run = run_without_proc(tmp_path, environment=f"PYTHONPATH={OTHER}")
    assert run.environment.start_method == "spawn"
    assert run.environment.not_measured["open_files_limit"] == "not reported by the operating system"
    assert [trial.status for trial in run.sweep] == ["completed"] * 2
    for trial in run.sweep:
        assert (trial.samples_per_s or 0) > 0
        assert (trial.cpu_percent_of_allotted, trial.rss_bytes, trial.machine, trial.workers) == (None,) * 4
        reasons = [trial.not_measured[name] for name in ("cpu_percent_of_allotted", "rss_bytes", "machine")]
        assert all("/proc" in reason for reason in reasons), reasons
    assert run.verdict.bound == "input"


@mounts
@pytest.mark.slow
def test_without_proc_linux_measures_too(tmp_path: Path) -> None:
    run = run_without_proc(tmp_path)
    assert run.environment.start_method == "forkserver"
    assert [trial.status for trial in run.sweep] == ["completed"] * 2
    assert {trial.rss_bytes for trial in run.sweep} == {None}
