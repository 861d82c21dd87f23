"""Keeps a swap file and a control group with a memory limit until a line comes in or the input ends; removes both.

    python benchmarks/diagnosis/swap_keeper.py LIMIT_MIB SWAP_MIB

Prints the folder of the group when both are there, or `not made: REASON`. It needs root on Linux. As a process of its
own, it removes both even if the processes in the group are killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

MOUNT = Path("/sys/fs/cgroup")
NAME = "loaderbench-swap"


class Group:
    """A control group, of version 1 or 2."""

    def __init__(self, name: str) -> None:
        first = (MOUNT / "memory" / "memory.limit_in_bytes").exists()
        self._above = MOUNT / "memory" if first else MOUNT
        self.folder = self._above / name
        self._limit, self._unlimited = ("memory.limit_in_bytes", "-1") if first else ("memory.max", "max")

    def make(self, limit_mib: int) -> None:
        self.folder.mkdir()
        (self.folder / self._limit).write_text(str(limit_mib << 20))

    def lift(self) -> None:
        """Remove the limit, or what comes back from swap would not fit."""
        with suppress(OSError):
            (self.folder / self._limit).write_text(self._unlimited)

    def remove(self) -> None:
        for _ in range(100):
            if not self.folder.exists():
                return
            for pid in (self.folder / "cgroup.procs").read_text().split():
                with suppress(OSError):
                    (self._above / "cgroup.procs").write_text(pid)
            with suppress(OSError):
                self.folder.rmdir()
            time.sleep(0.1)


def make_swap(file: Path, size_mib: int) -> None:
    """Write a swap file and use it. Raises `OSError` if that is not allowed."""
    opened = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.posix_fallocate(opened, 0, size_mib << 20)
    os.close(opened)
    for command in ("mkswap", "swapon"):
        done = subprocess.run([command, str(file)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise OSError(done.stderr.strip())


def keep(limit_mib: int, swap_mib: int) -> None:
    group = Group(f"{NAME}-{os.getpid()}")
    with tempfile.TemporaryDirectory(prefix=NAME) as folder:
        file = Path(folder, "swap")
        try:
            group.make(limit_mib)
            make_swap(file, swap_mib)
            print(group.folder, flush=True)
            sys.stdin.readline()  # a line, or the end of all processes that could write one
        except OSError as error:
            print(f"not made: {error}", flush=True)
        finally:
            group.lift()
            subprocess.run(["swapoff", str(file)], stderr=subprocess.DEVNULL, check=False)
            group.remove()


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    keep(*map(int, sys.argv[1:]))
