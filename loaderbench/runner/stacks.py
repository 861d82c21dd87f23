"""Writes the Python stacks of every process of an unresponsive trial to the trial's log.

Processes forked from the trial's process inherit its signal handler. For a spawned process, which has none, the kernel
function it waits in is reported instead.
"""

from __future__ import annotations

import faulthandler
import re
import signal
import time
from contextlib import suppress
from pathlib import Path

import psutil

SIGNAL = getattr(signal, "SIGUSR2", None)
_WRITE_S = 0.3  # a stopped thread is dumped by the signal itself, immediately
_FRAME = re.compile(r'^\s+File "(?P<file>[^"]*)", line (?P<line>\d+) in (?P<name>.+)$', re.MULTILINE)
_CAUGHT = re.compile(r"^SigCgt:\s*([0-9a-f]+)", re.MULTILINE)
_MOST_ANSWERS = 4


def answer_with_stacks() -> None:
    """Make this process, and all processes forked from it, write thread stacks to stderr on a signal."""
    if SIGNAL is not None and hasattr(faulthandler, "register"):
        faulthandler.register(SIGNAL, all_threads=True, chain=False)


def dump_stacks(pid: int | None, log: Path) -> str:
    """Ask every process of a trial for its stacks; return their innermost frames in one line, empty without any."""
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
    """Where one process is blocked: the innermost frame of its main thread, or the kernel function it waits in."""
    with suppress(psutil.Error, OSError):
        before = _append(log, f"\n--- process {process.pid} ({process.status()}), stack traces:\n")
        if SIGNAL is None or not _catches_signal(process.pid):
            waits = _read(Path(f"/proc/{process.pid}/wchan")) or "unknown"
            _append(log, f"no handler; waiting in the kernel: {waits}\n")
            return f"process {process.pid} waits in {waits}"
        process.send_signal(SIGNAL)
        time.sleep(_WRITE_S)
        written = log.read_bytes()[before:].decode("utf-8", "replace")
        return f"process {process.pid} is in {_innermost(written)}"
    return ""


def _innermost(dump: str) -> str:
    """The innermost frame, as `acquire (threading.py:327)`, of the main thread, which faulthandler lists last."""
    main = dump.rpartition("most recent call first")[2]
    frame = _FRAME.search(main)
    return f"{frame['name']} ({Path(frame['file']).name}:{frame['line']})" if frame else "no Python frame"


def _catches_signal(pid: int) -> bool:
    """Whether the process catches the signal, which would kill it otherwise."""
    caught = _CAUGHT.search(_read(Path(f"/proc/{pid}/status")))
    return SIGNAL is not None and caught is not None and bool(int(caught[1], 16) >> (SIGNAL - 1) & 1)


def _read(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""


def _append(log: Path, text: str) -> int:
    """Append to the log and return its new size."""
    with log.open("ab") as file:
        file.write(text.encode())
        return file.tell()
