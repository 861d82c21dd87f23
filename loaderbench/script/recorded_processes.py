"""The processes of a script that record loaders: each leaves a file with its pid, and a command may wait for them.

There are several if a command was profiled that starts the ranks of a training.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from loaderbench.monitors.machine import is_alive
from loaderbench.script.recording import SUFFIX, read_file

LOOK_S = 0.2
_BEGUN = ".begun"


def note_begun(folder: Path) -> None:
    """Note that this process iterates over a loader. Raises `OSError`."""
    (folder / f"{os.getpid()}{_BEGUN}").touch()


def begun_pids(folder: Path) -> list[int]:
    """Those of all processes that have, in order."""
    return sorted(int(file.stem) for file in folder.glob(f"*{_BEGUN}"))


def has_lost(folder: Path) -> bool:
    """Whether a process has begun, and ended before it could save for the last time."""
    return not all(_has_ended(folder / f"{pid}{SUFFIX}") for pid in begun_pids(folder))


def wait_for_last_saves(folder: Path, longest_s: float) -> int:
    """Wait until each process has ended or saved for the last time; return how many have not after `longest_s`.

    A rank that is not waited for by the one that started it ends later than the command, as under Lightning's launcher.
    """
    until_s = time.monotonic() + longest_s
    while (left := _still_recording(folder)) and time.monotonic() < until_s:
        time.sleep(LOOK_S)
    return len(left)


def _still_recording(folder: Path) -> list[int]:
    return [pid for pid in begun_pids(folder) if is_alive(pid) and not _has_ended(folder / f"{pid}{SUFFIX}")]


def _has_ended(file: Path) -> bool:
    return file.exists() and all(one.has_ended for one in read_file(file))


def ranks_by_files(folder: Path) -> Callable[[], list[int]]:
    """What finds the processes of this machine that record, other than this one."""
    return lambda: [pid for pid in begun_pids(folder) if pid != os.getpid() and is_alive(pid)]
