"""Lines of the user's own code, by looks at the thread that loads: real loaders, with and without workers."""

from __future__ import annotations

import gc
import linecache
import os
import sys
import threading
import time
import weakref
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from loaderbench import Profiler
from loaderbench.code_places import CodeFrame, CodeStack, is_library, is_ours, shown_path
from loaderbench.diagnosis.hotspots import find_hotspots, stack_shares
from loaderbench.recorder.code_looks import FEWEST_LOOKS, code_looks_of
from loaderbench.records import CodeLooks, StageCost, Trial
from loaderbench.tracing import block as layout, lines
from loaderbench.tracing.block import BLOCK_BYTES, NOBODY, Block, SeenFrame, fitted
from loaderbench.tracing.lines import (
    DEEPEST,
    FREQUENT_LOOKS,
    INTERVAL_S,
    PROMPT_S,
    RARE_INTERVAL_S,
    LineClock,
    frames_below_fetcher,
)
from loaderbench.tracing.reading import NOTHING_TAKEN, read
from loaderbench.tracing.tracer import Tracer

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
    def files(self) -> list[str]:
        """Of the frames below the fetcher."""
        assert self.frame is not None
        return [frame.f_code.co_filename for frame in frames_below_fetcher(self.frame)]


def test_frames_are_those_below_the_fetcher_without_our_own() -> None:
    own, ours = "/home/me/data.py", str(Path(frames_below_fetcher.__code__.co_filename))
    library = f"{PACKAGES}/PIL/Image.py"
    assert is_ours(ours)
    assert not is_ours(ours.replace("/loaderbench/", "/loaderbench_demo/"))
    assert Calls("/home/me/train.py", FETCH, own, ours, library).files == [own, library]
    assert Calls("/home/me/train.py", own).files == []
    assert Calls(FETCH, ours).files == []
    assert Calls(FETCH, *[own] * (DEEPEST + 5)).files == [own] * DEEPEST


def test_a_block_keeps_frames_and_who_called_them() -> None:
    block = Block(bytearray(BLOCK_BYTES))
    long = CodeFrame("/é" * 300, 2, "ü\t" * 300)
    seen = [SeenFrame(NOBODY, CodeFrame("", 0, "decode")), SeenFrame(0, CodeFrame("/h/a.py", 7, "D.load"))]
    assert [block.add_frame(one) for one in [*seen, SeenFrame(1, fitted(long))]] == [0, 1, 2]
    assert block.frames()[:2] == seen
    assert block.frames()[2] == SeenFrame(1, fitted(long))
    assert fitted(long).file.endswith("é/é")
    assert fitted(long).function.startswith("ü ü")


def look(clock: LineClock, *files: str) -> None:
    frame = Calls(FETCH, *files).frame
    assert frame is not None
    clock._look(frame, "")


def test_what_the_tree_has_no_room_for_is_charged_to_its_caller() -> None:
    tracer = Tracer(Block(bytearray(BLOCK_BYTES)))
    clock = LineClock(tracer)
    for number in range(layout.FRAMES + 3):
        look(clock, "/home/me/data.py", f"{PACKAGES}/more{number}.py")
    assert len(tracer.block.frames()) == layout.FRAMES
    found = read([tracer.block], None, NOTHING_TAKEN)
    assert found.looks == layout.FRAMES + 3
    assert found.stacks[CodeStack("", (CodeFrame("/home/me/data.py", 1, "f2"),))] == pytest.approx(5 * RARE_INTERVAL_S)


def test_threads_switch_sooner_only_around_a_look_and_until_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    block, usual_s, at_looks_s, looked = Block(bytearray(BLOCK_BYTES)), sys.getswitchinterval(), [], threading.Event()
    block.header[layout.ENABLED] = 1.0

    def look_at(clock: LineClock, _: int) -> None:
        at_looks_s.append((sys.getswitchinterval(), time.monotonic() - clock._next_s))
        if len(at_looks_s) == 3:
            looked.set()

    monkeypatch.setattr(LineClock, "_look_at", look_at)
    clock = LineClock(Tracer(block))
    clock.begin()
    assert looked.wait(60)
    clock.end()
    assert sys.getswitchinterval() == usual_s
    assert [seconds for seconds, _ in at_looks_s[:3]] == pytest.approx([PROMPT_S] * 3)
    assert min(late_s for _, late_s in at_looks_s) > -1e-3  # at the time drawn before the interval was shortened


def test_later_looks_are_fewer_and_stand_for_more_time() -> None:
    tracer = Tracer(Block(bytearray(BLOCK_BYTES)))
    clock = LineClock(tracer)
    for _ in range(FREQUENT_LOOKS + 2):
        look(clock, "/home/me/data.py")
    assert tracer.block.stack_s[1] == pytest.approx(FREQUENT_LOOKS * INTERVAL_S + 2 * RARE_INTERVAL_S)
    assert tracer.block.header[layout.LOOKS] == FREQUENT_LOOKS + 2


def test_equal_code_of_two_files_has_two_places() -> None:
    tracer = Tracer(Block(bytearray(BLOCK_BYTES)))
    for file in ("/home/me/a.py", "/home/me/b.py", "/home/me/a.py"):
        look(LineClock(tracer), file)
    assert [frame.frame.file for frame in tracer.block.frames()[1:]] == ["/home/me/a.py", "/home/me/b.py"]


def test_workers_that_are_started_again_go_on_with_the_same_tree() -> None:
    tracer = Tracer(Block(bytearray(BLOCK_BYTES)))
    for _ in range(2):
        look(LineClock(tracer), "/home/me/data.py")
    assert list(tracer.block.stack_s[:3]) == [0.0, 2 * INTERVAL_S, 0.0]


CODE = look.__code__


def test_a_stack_is_under_the_stage_that_is_timed_in_its_thread() -> None:
    tracer = Tracer(Block(bytearray(BLOCK_BYTES)))
    clock, own = LineClock(tracer), threading.get_ident()
    found = [clock._stage(own, CODE)]
    tracer.clock.begin(tracer.place("sample"))
    found.append(clock._stage(own, CODE))
    tracer.clock.enter(tracer.place("transform", "Crop"))
    found += [clock._stage(own, CODE), clock._stage(own + 1, CODE)]
    tracer.clock.end()
    assert [*found, clock._stage(own, CODE)] == ["", "sample", "transform", "", ""]


class Held:
    """What a function holds: the tensors of a batch, say."""


def test_a_look_keeps_no_frame_and_what_its_function_held_is_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, seen = LineClock(Tracer(Block(bytearray(BLOCK_BYTES)))), threading.Event()

    def look(*_: object) -> None:
        monkeypatch.setattr(lines, "INTERVAL_S", 60.0)  # the next look is none that could free it
        seen.set()

    def load() -> weakref.ref[Held]:
        held = Held()
        assert seen.wait(10)
        return weakref.ref(held)

    clock._look = look  # type: ignore[method-assign]
    clock._block.header[layout.ENABLED] = 1.0
    clock.begin()
    held = load()
    until_s = time.monotonic() + 10
    while held() is not None and time.monotonic() < until_s:
        time.sleep(0.001)
    was_freed = held() is None
    clock.end()
    assert was_freed


@pytest.mark.parametrize("collects", [True, False])
def test_no_garbage_is_collected_while_frames_of_another_thread_are_made(
    monkeypatch: pytest.MonkeyPatch, collects: bool
) -> None:
    seen: list[bool] = []
    frames = sys._current_frames
    monkeypatch.setattr(sys, "_current_frames", lambda: seen.append(gc.isenabled()) or frames())
    monkeypatch.setattr(sys, "version_info", (3, 11))
    clock = LineClock(Tracer(Block(bytearray(BLOCK_BYTES))))
    clock._look = lambda *_: seen.append(gc.isenabled())  # type: ignore[method-assign]
    if not collects:
        gc.disable()
    try:
        clock._look_at(threading.get_ident())
        after = gc.isenabled()
    finally:
        gc.enable()
    assert (seen, after) == ([False, False], collects)


def test_a_loop_whose_last_frame_is_freed_by_a_look_ends_the_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    failed: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", failed.append)
    clock, ended = LineClock(Tracer(Block(bytearray(BLOCK_BYTES)))), threading.Event()

    def look(*_: object) -> None:
        clock.end()
        ended.set()

    clock._look = look  # type: ignore[method-assign]
    clock._block.header[layout.ENABLED] = 1.0
    clock.begin()
    assert ended.wait(10)
    clock.end()
    assert not failed


def test_places_are_written_as_a_reader_knows_them() -> None:
    assert shown_path("/home/me/a/data.py", "/home/me") == str(Path("a/data.py"))
    assert shown_path("/elsewhere/data.py", "/home/me") == "data.py"
    assert shown_path(f"{PACKAGES}/PIL/Image.py", "/home/me") == "PIL/Image.py"
    assert shown_path("/usr/lib/python3.11/zipfile.py", "") == "zipfile.py"
    assert is_library("<frozen abc>")
    assert shown_path("<frozen abc>", "/home/me") == "<frozen abc>"
    assert not is_library("/home/me/data.py")


def test_a_cell_of_a_notebook_is_the_user_s_own_and_code_that_a_package_generates_is_not() -> None:
    cell, of_attrs, unknown = "<ipython-input-1-abc>", "<attrs generated init a.B>", "<string>"
    assert is_library(cell), "before it runs"
    for name in (cell, of_attrs):
        linecache.cache[name] = (6, None, ["x = 1\n"], name)
    try:
        assert [is_library(name) for name in (cell, of_attrs, unknown)] == [False, True, True]
        assert shown_path(cell, "/home/me") == cell
        stack = CodeStack("decode", (CodeFrame(cell, 1, "f"),))
        found = code_looks_of({stack: 1.0}, FEWEST_LOOKS, "/home/me")
        assert found is not None
        assert [(frame.own, frame.file, frame.text) for frame in found.frames] == [(True, cell, "x = 1")]
    finally:
        for name in (cell, of_attrs):
            del linecache.cache[name]


OWN, SAME = CodeFrame("/h/a.py", 1, "f"), CodeFrame("/h/b.py", 2, "g")
LIBRARY = CodeFrame(f"{PACKAGES}/PIL/Image.py", 3, "Image.resize")
DEEP = CodeFrame(f"{PACKAGES}/PIL/core.py", 4, "core")


def trial(looks: CodeLooks, **stages_s: float) -> Trial:
    stages = {stage: StageCost(None, wall_s) for stage, wall_s in stages_s.items()} or None
    return Trial(role="profile", id="a", config={}, round=1, status="completed", code_looks=looks, stages=stages)


def test_shares_are_of_all_looks_and_few_looks_say_nothing() -> None:
    stacks = {
        CodeStack("decode", (OWN, LIBRARY)): 30.0,
        CodeStack("", (OWN,)): 10.0,
        CodeStack("", (OWN, SAME)): 60.0,
    }
    found = code_looks_of(stacks, 100, "/h")
    assert found is not None
    assert found.looks == 100
    assert [
        (line.file, line.line, line.stage, line.share, line.below)
        for line in find_hotspots([trial(found), trial(found)])
    ] == [
        ("b.py", 2, "decode", 0.6, ""),
        ("a.py", 1, "decode", 0.4, "Image.resize"),
    ]
    assert code_looks_of(stacks, FEWEST_LOOKS - 1, "/h") is None


def test_a_sample_without_clocks_has_the_stages_of_those_with_clocks() -> None:
    stacks = {
        CodeStack("decode", (OWN, LIBRARY)): 20.0,
        CodeStack("", (OWN, LIBRARY, DEEP)): 4.0,  # by its names a transform
        CodeStack("", (OWN, DEEP)): 2.0,
        CodeStack("", (LIBRARY,)): 1.0,
    }
    found = code_looks_of(stacks, 100, "/h")
    assert found is not None
    assert {(len(stack.frames), stack.seconds): stack.stage for stack in found.stacks} == {
        (2, 20): "decode", (3, 4): "decode", (2, 2): "decode", (1, 1): "transform",
    }  # fmt: skip


def test_the_own_time_of_a_timed_sample_stays_in_its_stage_next_to_a_timed_call_of_the_same_line() -> None:
    stacks = {
        CodeStack("decode", (OWN, LIBRARY)): 20.0,
        CodeStack("sample", (OWN,)): 9.0,
        CodeStack("sample", (OWN, DEEP)): 30.0,  # by its names a transform
        CodeStack("", (OWN, DEEP)): 1.0,
    }
    found = code_looks_of(stacks, 100, "/h")
    assert found is not None
    assert {(stack.stage, len(stack.frames), stack.seconds, stack.likely_stage) for stack in found.stacks} == {
        ("decode", 2, 20, ""), ("sample", 1, 9, "sample"), ("sample", 2, 31, "transform"),
    }  # fmt: skip


def test_a_stage_has_the_share_that_clocks_say_and_divides_it_among_its_stacks() -> None:
    stacks = {CodeStack("decode", (OWN,)): 30.0, CodeStack("decode", (SAME,)): 10.0, CodeStack("sample", (DEEP,)): 20.0}
    looks = code_looks_of({**stacks, CodeStack("mine", (LIBRARY,)): 40.0}, 100, "/h")
    assert looks is not None
    shares = stack_shares([trial(looks, decode=0.002, sample=0.004, read=0.1)])
    assert {(stage, frame.line): round(share, 3) for (stage, (frame,)), share in shares.items()} == {
        ("decode", 1): 0.15,
        ("decode", 2): 0.05,
        ("sample", 4): 0.4,
        ("mine", 3): 0.4,  # no clock
    }
    assert stack_shares([]) == {}


def test_rare_stacks_are_counted_with_their_caller_down_to_what_an_own_line_calls() -> None:
    stacks = {CodeStack("decode", (OWN, LIBRARY, DEEP, DEEP)): 1.0, CodeStack("decode", (SAME,)): 999.0}
    found = code_looks_of(stacks, 100, "/h")
    assert found is not None
    assert [(len(stack.frames), stack.seconds) for stack in found.stacks] == [(1, 999), (2, 1)]
    assert [frame.own for frame in found.frames] == [True, True, False]


def test_a_dataset_of_a_library_is_charged_for_what_other_libraries_do_for_it() -> None:
    dataset = CodeFrame(f"{PACKAGES}/torchvision/datasets/fakedata.py", 52, "FakeData.__getitem__")
    subset = CodeFrame(f"{PACKAGES}/torch/utils/data/dataset.py", 416, "Subset.__getitems__")
    seed = CodeFrame(f"{PACKAGES}/torch/random.py", 59, "manual_seed")
    unnamed = CodeFrame("", 1, "generated")
    stack = CodeStack("sample", (subset, dataset, seed, LIBRARY, unnamed))
    found = code_looks_of({stack: 1.0}, FEWEST_LOOKS, "/h")
    assert found is not None
    assert [(line.file, line.line, line.below) for line in find_hotspots([trial(found)])] == [
        ("fakedata.py", 52, "manual_seed")
    ]


def test_a_line_of_a_library_stands_for_stacks_without_own_code_and_small_shares_are_left_out() -> None:
    found = code_looks_of({CodeStack("", (LIBRARY, DEEP)): 9.96, CodeStack("", (OWN,)): 0.04}, 100, "/h")
    assert found is not None
    assert [(line.file, line.path, round(line.share, 6)) for line in find_hotspots([trial(found)])] == [
        ("core.py", str(Path("PIL/core.py")), 0.996)
    ]


class Slow(Dataset[Any]):
    def __len__(self) -> int:
        return 400

    def __getitem__(self, index: int) -> Any:
        time.sleep(0.004)
        return torch.zeros(2), index


SLEEPS = Slow.__getitem__.__code__.co_firstlineno + 1


@pytest.mark.sleeping
@pytest.mark.parametrize("workers", [0, 1])
def test_a_profile_names_the_line_and_leaves_the_interpreter_as_it_was(workers: int) -> None:
    usual_s, seen_s = sys.getswitchinterval(), set()
    with Profiler("lines", warmup=2, trace=True) as prof:
        for _ in prof.iter(DataLoader(Slow(), batch_size=8, num_workers=workers)):
            seen_s.add(round(sys.getswitchinterval(), 6))  # kept as whole microseconds
    assert seen_s <= {usual_s, PROMPT_S}
    assert sys.getswitchinterval() == usual_s
    assert "loaderbench-lines" not in [thread.name for thread in threading.enumerate()]
    found = prof.result.trials[0].code_looks
    assert found is not None
    line = prof.result.hotspots[0]
    assert (line.file, line.line, line.stage) == ("test_lines.py", SLEEPS, "sample")
    assert line.text == "time.sleep(0.004)"
    assert line.share > 0.5


def test_without_tracing_nothing_is_looked_at() -> None:
    with Profiler("untraced") as prof:
        for _ in prof.iter(DataLoader(Slow(), batch_size=40)):
            assert "loaderbench-lines" not in [thread.name for thread in threading.enumerate()]
    assert prof.result.trials[0].code_looks is None
    assert prof.result.hotspots == ()
    assert prof.result.trials[0].not_measured["code_looks"]
