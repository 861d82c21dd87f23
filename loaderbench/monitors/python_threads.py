"""CPU time of Python threads that run next to the training loop in the main process. They share its GIL."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePath
from types import FrameType

from loaderbench.code_places import is_library, is_ours, without_collection
from loaderbench.monitors.processes import scheduled
from loaderbench.records import BusyThread

LEAST = 0.05
"""Share of a CPU from which a thread is recorded: finding its name costs the stacks of all threads."""

_KNOWN = re.compile(r"^loaderbench-|_pin_memory_loop")
"""Threads of loaderbench, and torch's thread that pins memory, whose time is read separately."""


class PythonThreads:
    """Adds up the CPU time of Python threads from each `begin` to the next `busiest`.

    Linux only: elsewhere, `busiest` returns `None`.
    """

    def __init__(self) -> None:
        self._began_s: float | None = None
        self._own, self._wall_s = 0, 0.0
        self._before: dict[int, float] = {}
        self._used_s = Counter[int]()

    def begin(self) -> None:
        """Start counting, or count again. The calling thread is left out: it runs the loop."""
        self._own = threading.get_native_id()
        self._before, self._began_s = dict(_cpu_s(self._others())), time.monotonic()

    def busiest(self) -> BusyThread | None:
        """The thread that used the most CPU time, and at least a noticeable part; `None` without any."""
        others = self._others()
        if self._began_s is not None:
            self._wall_s += time.monotonic() - self._began_s
            self._used_s.update({thread: cpu_s - self._before.get(thread, 0.0) for thread, cpu_s in _cpu_s(others)})
            self._began_s = None
        most = max(others, key=lambda thread: self._used_s[thread.native_id or 0], default=None)
        cpu_s, wall_s = self._used_s[most.native_id or 0] if most else 0.0, self._wall_s
        return BusyThread(name=_name(most), cpu_share=cpu_s / wall_s) if most and cpu_s > LEAST * wall_s > 0 else None

    def _others(self) -> list[threading.Thread]:
        return [one for one in threading.enumerate() if one.native_id != self._own and not _KNOWN.search(str(one.name))]


def _cpu_s(threads: list[threading.Thread]) -> Iterator[tuple[int, float]]:
    """The native ID and the CPU seconds of each thread that can be read."""
    for thread in threads:
        found = scheduled(f"/proc/self/task/{thread.native_id}")
        if found is not None and thread.native_id is not None:
            yield thread.native_id, found.run_ns / 1e9


def _name(thread: threading.Thread) -> str:
    """The outermost function of the user's own that the thread runs, with its file and line; else the thread's name."""
    with without_collection():
        codes = [frame.f_code for frame in _frames(sys._current_frames().get(thread.ident or 0))]
    own = [code for code in codes if not is_library(code.co_filename) and not is_ours(code.co_filename)]
    return (
        f"{own[-1].co_name} ({PurePath(own[-1].co_filename).name}:{own[-1].co_firstlineno})"
        if own
        else str(thread.name)
    )


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
