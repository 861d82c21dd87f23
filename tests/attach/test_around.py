"""Work of the user's own code around a loader, in iterators that take its batches and hand them on."""

from __future__ import annotations

from pathlib import Path

import pytest

from loaderbench.attach.reading import read_stacks
from loaderbench.attach.stacks import Stack, Stacks
from loaderbench.code_places import CodeFrame

PACKAGES = "/env/lib/python3.11/site-packages"
NEXT = CodeFrame(f"{PACKAGES}/torch/utils/data/dataloader.py", 700, "_BaseDataLoaderIter.__next__")
POLL = CodeFrame("/usr/lib/python3.11/multiprocessing/connection.py", 440, "Connection._poll")
MAIN = 10

CODE = """\
def convert(loader):
    def nothing():
        yield
    for batch in loader:
        yield heavy(batch)

class Converted:
    def __next__(self):
        batch = next(self.batches)
        return heavy(batch)

def train(loader):
    for batch in loader:
        step(batch)
        def later():
            yield
"""
CONVERT, CONVERTED, TRAIN = (4, 5), (9, 10), (13, 14)
"""Lines that take a batch, and lines that work on it."""


def waits_of(file: Path, lines: tuple[int, int], *below: CodeFrame) -> tuple[float | None, dict[str, float]]:
    takes, works = (CodeFrame(str(file), line, "f") for line in lines)
    loop = CodeFrame(str(file.with_name("train.py")), 1, "<module>")
    stacks = tuple(
        Stack(MAIN, frames, looks)
        for frames, looks in (((loop, takes, NEXT, POLL), 10), ((loop, works, *below), 30), ((loop,), 60))
    )
    found = read_stacks(Stacks(stacks, (*stacks, Stack(11, (_WORKER, _FETCH), 9)), ()), MAIN, workers=1, folder="")
    return found.wait_share, found.inside.waits if found.inside else {}


_WORKER = CodeFrame(f"{PACKAGES}/torch/utils/data/_utils/worker.py", 300, "_worker_loop")
_FETCH = CodeFrame(f"{PACKAGES}/torch/utils/data/_utils/fetch.py", 54, "_MapDatasetFetcher.fetch")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "own.py").write_text(CODE)
    return tmp_path / "own.py"


@pytest.mark.parametrize("lines", [CONVERT, CONVERTED])
def test_work_of_an_iterator_around_the_loader_is_a_wait_for_data(file: Path, lines: tuple[int, int]) -> None:
    assert waits_of(file, lines) == (0.4, {"main_process": 0.75, "waiting": 0.25})


def test_the_training_loop_itself_is_no_iterator(file: Path) -> None:
    assert waits_of(file, TRAIN) == (0.1, {"waiting": 1.0})


def test_a_generator_that_trains_is_the_training_loop(file: Path) -> None:
    backward = CodeFrame(f"{PACKAGES}/torch/autograd/graph.py", 800, "_engine_run_backward")
    assert waits_of(file, CONVERT, backward) == (0.1, {"waiting": 1.0})


def test_code_that_cannot_be_read_is_part_of_the_step(tmp_path: Path) -> None:
    assert waits_of(tmp_path / "gone.py", CONVERT) == (0.1, {"waiting": 1.0})
    (tmp_path / "other.py").write_text("not Python (")
    assert waits_of(tmp_path / "other.py", CONVERT) == (0.1, {"waiting": 1.0})


def test_without_workers_it_is_a_stage_of_loading(file: Path) -> None:
    takes, works = (CodeFrame(str(file), line, "f") for line in CONVERT)
    stacks = (Stack(MAIN, (takes, NEXT, _FETCH), 10), Stack(MAIN, (works,), 30))
    found = read_stacks(Stacks(stacks, stacks, ()), MAIN, workers=0, folder="").inside
    assert found is not None
    assert {stage: one.share for stage, one in found.stages.items()} == {"sample": 0.25, "main_process": 0.75}


def test_lines_are_named_from_looks_at_samples_alone(file: Path) -> None:
    """Those at code around the loader have no stack below the fetcher."""
    takes, works = (CodeFrame(str(file), line, "f") for line in CONVERT)
    for at_samples in (0, 2):
        stacks = (Stack(MAIN, (takes, NEXT, _FETCH), at_samples), Stack(MAIN, (works,), 100))
        seen = tuple(one for one in stacks if one.looks)
        found = read_stacks(Stacks(seen, seen, ()), MAIN, workers=0, folder="")
        assert found.code is None
