"""Linux's `/proc`, as cheaply as it can be read: one small file per process and reading. Parsers take text.

Source: proc(5) of the Linux man-pages.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


@dataclass(frozen=True)
class ProcessStat:
    """CPU seconds since the start of a process (its dead threads included) and its resident memory."""

    cpu_s: float
    rss_bytes: int


def parse_stat(text: str) -> ProcessStat:
    """Parse `/proc/<pid>/stat`. The command may hold anything, so that counting starts after its last bracket."""
    fields = text[text.rindex(")") + 2 :].split()
    return ProcessStat((int(fields[11]) + int(fields[12])) / _TICKS_PER_S, int(fields[21]) * _PAGE_BYTES)


def parse_read_bytes(text: str) -> int:
    """Bytes fetched from a disk, of `/proc/<pid>/io`; what the page cache gave is not among them."""
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("read_bytes:"))


def parse_pss_bytes(text: str) -> int:
    """Proportional memory of `/proc/<pid>/smaps_rollup`: a shared page counts once over all who share it."""
    return next(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("Pss:"))


def read_stat(pid: int) -> ProcessStat | None:
    """Return `None` when the process is gone."""
    text = _read(f"/proc/{pid}/stat")
    return parse_stat(text) if text else None


def read_read_bytes(pid: int) -> int | None:
    """Return `None` when the process is gone or is somebody else's."""
    text = _read(f"/proc/{pid}/io")
    return parse_read_bytes(text) if text else None


def read_pss_bytes(pid: int) -> int | None:
    """Return `None` when the process is gone or is somebody else's. Costs milliseconds: never in a measured window."""
    text = _read(f"/proc/{pid}/smaps_rollup")
    return parse_pss_bytes(text) if text else None


def process_tree(root: int) -> list[int]:
    """The process and all below it, by the kernel's own lists of children."""
    found, to_see = [], [root]
    while to_see:
        pid = to_see.pop()
        found.append(pid)
        try:
            threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - half the cost of a Path per thread
        except OSError:
            continue
        for thread in threads:
            to_see += map(int, _read(f"/proc/{pid}/task/{thread}/children").split())
    return found


def available() -> bool:
    """Whether this kernel has what is read here."""
    return Path("/proc/self/task").is_dir() and Path(f"/proc/self/task/{os.getpid()}/children").exists()


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - read ten times a second
            return file.read()
    except OSError:
        return ""
