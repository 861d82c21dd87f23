"""What holds for every loader that is installed, in one run of all of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess

import pytest

torch = pytest.importorskip("torch")
from command_line import loaderbench  # noqa: E402
from loader_batches import INSTALLED, LEFTOVERS, every_loader, left_behind, sharing_leftovers  # noqa: E402

from loaderbench.loaders import LOADER_BACKENDS  # noqa: E402
from loaderbench.records import RunRecord, Trial  # noqa: E402
from loaderbench.store import read_run  # noqa: E402

pytestmark = [pytest.mark.slow, sharing_leftovers]
TRACED = ("torch", "threads", "spdl", "webdataset", "litdata", "streaming")

SUITE = """\
name: small
dataset: {root: photos, transform: imagenet_eval}
loader: {batch_size: 4, shuffle: true, drop_last: true}
sweep: {loader: auto, num_workers: [0, 2], threads: [2]}
consumer: {kind: none}
measure: {rounds: 1, seconds: 0.2, verify: false}
"""


@dataclass(frozen=True)
class Finished:
    """A run of all loaders: its record, what the command printed, and which files each loader left behind."""

    record: RunRecord
    command: CompletedProcess[str]
    left: dict[str, set[str]]

    def trials_of(self, loader: str) -> list[Trial]:
        return [trial for trial in self.record.trials if trial.config["loader"] == loader]


@pytest.fixture(scope="module")
def finished(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    folder = tmp_path_factory.mktemp("every")
    (folder / "photos").symlink_to(photos)
    (folder / "small.yaml").write_text(SUITE)
    before = {name: left_behind(name) for name in LEFTOVERS}
    cache = {"LOADERBENCH_CACHE": str(folder / "cache")}
    command = loaderbench("run", "small.yaml", "--out", "run", "-q", cwd=folder, **cache)
    assert command.returncode == 0, command.stderr
    return Finished(read_run(folder / "run"), command, {name: left_behind(name) - before[name] for name in LEFTOVERS})


@every_loader
def test_each_is_measured_with_its_own_workers_or_threads(name: str, finished: Finished) -> None:
    trials = finished.trials_of(name)
    assert {trial.status for trial in trials} == {"completed"}
    for trial in trials:
        asked = trial.config["num_workers"] or trial.config["threads"]
        assert (trial.workers.count if trial.workers else None) == asked
        if name in TRACED:
            assert {"read", "decode", "transform", "collate"} <= (trial.stages or {}).keys()
            assert ("read/reader" in (trial.stage_parts or {})) is bool(LOADER_BACKENDS[name].format)


@every_loader
def test_each_gives_the_batches_of_torch(name: str, finished: Finished) -> None:
    if name == "torch":
        pytest.skip("the others are compared with it")
    (parity,) = (each for each in finished.record.parity if each.loader == name)
    assert (parity.against, parity.refused) == ("torch", "")
    assert parity.difference is not None
    assert parity.difference < 0.01


def test_copies_are_written_in_the_formats_that_loaders_read(finished: Finished) -> None:
    read = {LOADER_BACKENDS[name].format for name in INSTALLED}
    assert {copy.format for copy in finished.record.copies} == read - {""}


def test_libraries_print_nothing_and_leave_no_files(finished: Finished) -> None:
    assert finished.command.stderr == ""
    assert not any(finished.left.values()), finished.left
