"""The processes of a script that record loaders: each leaves a file with its pid, and the command can wait for them.

A command that starts the ranks of a training has several such processes.
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
    """Note that this process has begun to iterate over a loader. Raises `OSError`."""
    (folder / f"{os.getpid()}{_BEGUN}").touch()


def begun_pids(folder: Path) -> list[int]:
    """The sorted pids of all processes that have begun to iterate over a loader."""
    return sorted(int(file.stem) for file in folder.glob(f"*{_BEGUN}"))


def has_lost(folder: Path) -> bool:
    """Whether a process that began a recording has ended before its last save."""
    return not all(_has_ended(folder / f"{pid}{SUFFIX}") for pid in begun_pids(folder))


def wait_for_last_saves(folder: Path, longest_s: float) -> int:
    """Wait until every process has ended or made its last save. Returns how many have not after `longest_s` seconds.

    A rank can outlive the command if the process that started the rank does not wait for it, as with Lightning's
    launcher.
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
    """Returns a function that lists the other recording processes of this machine."""
    return lambda: [pid for pid in begun_pids(folder) if pid != os.getpid() and is_alive(pid)]
