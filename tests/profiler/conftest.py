"""Fixtures of the tests of loops and loaders."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from listed import NewRecorder
from torch.utils.data import DataLoader

from loaderbench.script.naming import Makers
from loaderbench.script.order import RecordOrder
from loaderbench.script.recorder import ScriptRecorder


@pytest.fixture
def without_collector() -> Iterator[None]:
    """What is gone during the test was freed at once."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def new_recorder(tmp_path: Path) -> Iterator[NewRecorder]:
    """Makes recorders of a script's loaders, and finishes them: a thread of each saves until then."""
    made: list[ScriptRecorder] = []

    def make() -> ScriptRecorder:
        order = RecordOrder(folder=str(tmp_path), python_path=None)
        made.append(ScriptRecorder(order, DataLoader.__iter__, lambda: None, Makers()))
        return made[-1]

    yield make
    for recorder in made:
        recorder.finish()
