"""Lines of the user's own code, by looks at the thread that loads: real loaders, with and without workers."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from loaderbench import Profiler
from loaderbench.code_places import is_library, is_ours, shown_path
from loaderbench.recorder.code_looks import FEWEST_LOOKS, code_looks_of
from loaderbench.tracing import block as layout
from loaderbench.tracing.block import BLOCK_BYTES, Block, CodeLine
from loaderbench.tracing.lines import LineClock, line_of

PACKAGES = "/env/lib/python3.12/site-packages"
FETCH = f"{PACKAGES}{os.sep}torch{os.sep}utils{os.sep}data{os.sep}_utils{os.sep}fetch.py"


class Calls:
    """Calls one function from the next, each compiled as of a file, down to one that notes its frame."""

    def __init__(self, *files: str) -> None:
        self.frame: FrameType | None = None
        step: Any = self._note
        for number, file in enumerate(reversed(files)):
            scope: dict[str, Any] = {"step": step}
            exec(compile(f"def f{len(files) - number}(): step()", file, "exec"), scope)
            step = scope[f"f{len(files) - number}"]
        step()

    def _note(self) -> None:
        self.frame = sys._getframe(1)

    @property
    def line(self) -> CodeLine | None:
        assert self.frame is not None
        return line_of(self.frame)


def test_the_line_is_the_innermost_of_the_users_own_below_the_fetcher() -> None:
    own = "/home/me/data.py"
    found = Calls("/home/me/train.py", FETCH, own, "/home/me/more.py", f"{PACKAGES}/PIL/Image.py", "/x/numpy.so").line
    assert found == CodeLine("/x/numpy.so", 1, "f6", "")
    assert Calls(FETCH, own, f"{PACKAGES}/PIL/Image.py").line == CodeLine(own, 1, "f2", "f3")
    assert Calls(FETCH, f"{PACKAGES}/a.py", f"{PACKAGES}/b.py").line == CodeLine(f"{PACKAGES}/b.py", 1, "f3", "")


def test_nothing_above_the_fetcher_is_a_sample_and_our_own_calls_are_left_out() -> None:
    ours = str(Path(line_of.__code__.co_filename))
    assert is_ours(ours)
    assert Calls("/home/me/train.py", "/home/me/data.py").line is None
    assert Calls(FETCH, ours).line is None
    assert Calls(FETCH, "/home/me/data.py", ours).line == CodeLine("/home/me/data.py", 1, "f2", "")


def test_a_block_keeps_lines_and_their_counts() -> None:
    block = Block(bytearray(BLOCK_BYTES))
    lines = [CodeLine("/home/me/data.py", 7, "D.__getitem__", "resize"), CodeLine("/é" * 300, 2, "f" * 300, "")]
    assert [block.add_line(line) for line in lines] == [0, 1]
    first, second = block.lines()
    assert first == lines[0]
    assert (second.line, second.below) == (2, "")
    assert second.file.endswith("é/é")


def test_more_lines_than_there_is_room_for_are_left_out() -> None:
    block = Block(bytearray(BLOCK_BYTES))
    clock = LineClock(block)
    for number in range(layout.LINES + 3):
        frame = Calls(FETCH, f"/home/me/data{number}.py").frame
        assert frame is not None
        clock._look(frame)
    assert len(block.lines()) == layout.LINES
    assert sum(block.line_looks) == layout.LINES
    assert LineClock(block)._places[CodeLine("/home/me/data5.py", 1, "f2", "")] == 5


def test_places_are_written_as_a_reader_knows_them() -> None:
    assert shown_path("/home/me/a/data.py", "/home/me") == str(Path("a/data.py"))
    assert shown_path("/elsewhere/data.py", "/home/me") == "data.py"
    assert shown_path(f"{PACKAGES}/PIL/Image.py", "/home/me") == "PIL/Image.py"
    assert shown_path("/usr/lib/python3.11/zipfile.py", "") == "zipfile.py"
    assert is_library("<frozen abc>")
    assert not is_library("/home/me/data.py")


def test_shares_are_of_all_looks_and_few_looks_say_nothing() -> None:
    one, same = CodeLine("/h/a.py", 1, "f", "resize"), CodeLine("/h/a.py", 1, "f", "")
    found = code_looks_of({one: 30, same: 10, CodeLine("/h/b.py", 2, "g", ""): 60}, "/h")
    assert found is not None
    assert found.looks == 100
    assert [(line.place, line.share, line.below) for line in found.lines] == [
        ("b.py:2", 0.6, ""),
        ("a.py:1", 0.4, "resize"),
    ]
    assert code_looks_of({one: FEWEST_LOOKS - 1}, "/h") is None


class Slow(Dataset[Any]):
    def __len__(self) -> int:
        return 400

    def __getitem__(self, index: int) -> Any:
        time.sleep(0.004)
        return torch.zeros(2), index


SLEEPS = Slow.__getitem__.__code__.co_firstlineno + 1


@pytest.mark.timed
@pytest.mark.parametrize("workers", [0, 1])
def test_a_profile_names_the_line_and_leaves_the_interpreter_as_it_was(workers: int) -> None:
    usual_s, seen_s = sys.getswitchinterval(), set()
    with Profiler("lines", warmup=2, trace=True) as prof:
        for _ in prof.iter(DataLoader(Slow(), batch_size=8, num_workers=workers)):
            seen_s.add(sys.getswitchinterval())
    assert seen_s == {usual_s}
    assert sys.getswitchinterval() == usual_s
    assert "loaderbench-lines" not in [thread.name for thread in threading.enumerate()]
    found = prof.result.trials[0].code_looks
    assert found is not None
    assert found.lines[0].place.endswith(f"test_lines.py:{SLEEPS}")
    assert found.lines[0].text == "time.sleep(0.004)"
    assert found.lines[0].share > 0.5


def test_without_tracing_nothing_is_looked_at() -> None:
    with Profiler("untraced") as prof:
        for _ in prof.iter(DataLoader(Slow(), batch_size=40)):
            assert "loaderbench-lines" not in [thread.name for thread in threading.enumerate()]
    assert prof.result.trials[0].code_looks is None
    assert prof.result.trials[0].not_measured["code_looks"]
