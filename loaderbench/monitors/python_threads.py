"""CPU time of Python threads that run next to the training loop in the main process. They share its GIL."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import PurePath
from types import FrameType

from loaderbench.code_places import is_library, is_ours
from loaderbench.monitors import proc
from loaderbench.records import BusyThread

_KNOWN = re.compile(r"^loaderbench-|_pin_memory_loop")
"""Threads of loaderbench, and torch's thread that pins memory, whose time is read separately."""


class PythonThreads:
    """Reads the CPU time of Python threads at two moments. Linux only: elsewhere, `busiest` returns `None`."""

    def __init__(self) -> None:
        self._began_s = 0.0
        self._before: dict[int, float] = {}

    def begin(self) -> None:
        """Start counting."""
        self._began_s, self._before = time.monotonic(), dict(_cpu_s(_others()))

    def busiest(self) -> BusyThread | None:
        """The thread other than the calling one that used the most CPU time since `begin`; `None` without any."""
        wall_s, others = time.monotonic() - self._began_s, _others()
        used_s = {thread: cpu_s - self._before.get(thread, 0.0) for thread, cpu_s in _cpu_s(others)}
        most = max(others, key=lambda thread: used_s.get(thread.native_id or 0, 0.0), default=None)
        cpu_s = used_s.get(most.native_id or 0, 0.0) if most else 0.0
        return BusyThread(name=_name(most), cpu_share=cpu_s / wall_s) if most and cpu_s > 0 and wall_s > 0 else None


def _others() -> list[threading.Thread]:
    own = threading.get_native_id()
    return [one for one in threading.enumerate() if one.native_id != own and not _KNOWN.search(one.name)]


def _cpu_s(threads: list[threading.Thread]) -> Iterator[tuple[int, float]]:
    """The native ID and the CPU seconds of each thread that can be read."""
    for thread in threads:
        text = proc.read_text(f"/proc/self/task/{thread.native_id}/schedstat")
        scheduled = proc.parse_schedstat(text) if text else None
        if scheduled is not None and thread.native_id is not None:
            yield thread.native_id, scheduled.run_ns / 1e9


def _name(thread: threading.Thread) -> str:
    """The outermost function of the user's own that the thread runs, with its file and line; else the thread's name."""
    own = [frame for frame in _frames(sys._current_frames().get(thread.ident or 0)) if _is_own(frame)]
    if not own:
        return thread.name
    code = own[-1].f_code
    return f"{code.co_name} ({PurePath(code.co_filename).name}:{code.co_firstlineno})"


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _is_own(frame: FrameType) -> bool:
    return not is_library(frame.f_code.co_filename) and not is_ours(frame.f_code.co_filename)
