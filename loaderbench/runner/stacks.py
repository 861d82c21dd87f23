"""Python stacks of every process of an unresponsive trial, written to the trial's log.

Each process that is forked from the trial's own has its handler, for signal handlers live through a fork; one that was
spawned and has none is told by what the kernel says it waits for.
"""

from __future__ import annotations

import faulthandler
import re
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

SIGNAL = getattr(signal, "SIGUSR2", None)
_WRITE_S = 0.3  # a stopped thread is dumped by the signal itself, at once
_FRAME = re.compile(r'^\s+File "(?P<file>[^"]*)", line (?P<line>\d+) in (?P<name>.+)$', re.MULTILINE)
_MOST_ANSWERS = 4


def answer_with_stacks() -> None:
    """Make this process, and all that is forked from it, write the stacks of its threads to stderr when asked."""
    if SIGNAL is not None and hasattr(faulthandler, "register"):
        faulthandler.register(SIGNAL, all_threads=True, chain=False)


def dump_stacks(pid: int | None, log: Path) -> str:
    """Ask every process of a trial for its stacks; return where they stand, in one line, empty where none answered."""
    answers = [said for process in _processes(pid) if (said := _ask(process, log))]
    more = f", and {len(answers) - _MOST_ANSWERS} more" if len(answers) > _MOST_ANSWERS else ""
    return "; ".join(answers[:_MOST_ANSWERS]) + more


def _processes(pid: int | None) -> list[psutil.Process]:
    try:
        main = psutil.Process(pid)
        return [main, *main.children(recursive=True)]
    except psutil.Error:
        return []


def _ask(process: psutil.Process, log: Path) -> str:
    """Where one process stands: the innermost frame of its main thread, or what the kernel says."""
    with suppress(psutil.Error, OSError):
        before = _append(log, f"\n--- process {process.pid} ({process.status()}), stack traces:\n")
        if SIGNAL is None or not _handles(process.pid):
            waits = _read(Path(f"/proc/{process.pid}/wchan")) or "unknown"
            _append(log, f"no handler; waiting in the kernel: {waits}\n")
            return f"process {process.pid} waits in {waits}"
        process.send_signal(SIGNAL)
        time.sleep(_WRITE_S)
        written = log.read_bytes()[before:].decode("utf-8", "replace")
        return f"process {process.pid} is in {_innermost(written)}"
    return ""


def _innermost(dump: str) -> str:
    """`acquire (threading.py:327)`, of the thread that faulthandler names last: the main one."""
    main = dump.rpartition("most recent call first")[2]
    frame = _FRAME.search(main)
    return f"{frame['name']} ({Path(frame['file']).name}:{frame['line']})" if frame else "no Python frame"


def _handles(pid: int) -> bool:
    """Whether it catches the signal, which would end it otherwise."""
    caught = next(_words(Path(f"/proc/{pid}/status"), "SigCgt:"), "0")
    return SIGNAL is not None and bool(int(caught, 16) >> (SIGNAL - 1) & 1)


def _words(file: Path, name: str) -> Iterator[str]:
    for line in _read(file).splitlines():
        if line.startswith(name):
            yield line.partition(":")[2].strip()


def _read(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""


def _append(log: Path, text: str) -> int:
    """Write to the log; the answer is its size after that."""
    with log.open("ab") as file:
        file.write(text.encode())
        return file.tell()
