"""What each thread of each process opens for itself."""

from __future__ import annotations

import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from loaderbench.per_thread import PerThread


class Handle:
    """Notes the process that closes it."""

    def __init__(self, notes: Path) -> None:
        self._notes = notes

    def __del__(self) -> None:
        self._notes.write_text(str(os.getpid()))


def test_threads_and_pickled_copies_open_for_themselves() -> None:
    handles = PerThread()
    handles.opened()["file"] = 1
    assert handles.opened() == {"file": 1}
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(handles.opened).result() == {}
    assert pickle.loads(pickle.dumps(handles)).opened() == {}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked here")
def test_a_forked_process_opens_for_itself_and_closes_nothing_of_its_parent(tmp_path: Path) -> None:
    handles = PerThread()
    handles.opened()["file"] = Handle(tmp_path / "closed_by")
    child = os.fork()
    if child == 0:
        os._exit(len(handles.opened()))
    assert os.waitpid(child, 0)[1] == 0
    assert list(tmp_path.iterdir()) == []
    handles.opened().clear()
    assert (tmp_path / "closed_by").read_text() == str(os.getpid())
