"""A folder that looks like `/proc`, for tests of what is read from there."""

from __future__ import annotations

from pathlib import Path
from shutil import rmtree

import pytest

from loaderbench.monitors import WorkerWatch
from loaderbench.records import WorkerStates

MS = 1_000_000  # in ns


class Machine:
    """A folder that looks like `/proc`, and a clock that only moves with `read`."""

    def __init__(self, root: Path) -> None:
        self.root, self.now_s = root, 100.0
        self.watch = WorkerWatch(str(root), lambda: self.now_s)

    def put(
        self,
        pid: int,
        run: int = 1,
        wait: int = 0,
        others: tuple[int, ...] = (),
        faults: tuple[int, int] = (0, 0),
        io: tuple[int, int] | None = (0, 0),
        state: str = "S",
        began: int = 7,
        waited: tuple[int, int] = (0, 0),
    ) -> None:
        """Write one process; `run`, `wait` and `others` in ms, `io` as bytes asked for and bytes from a disk.

        `waited` are ticks of children that it waited for, in user code and in the kernel.
        """
        folder = self.root / str(pid)
        rmtree(folder, ignore_errors=True)
        for tid, text in [
            (pid, f"{run * MS} {wait * MS} 5"),
            *((9000 + n, f"{o * MS} 0 5") for n, o in enumerate(others)),
        ]:
            (folder / "task" / str(tid)).mkdir(parents=True)
            (folder / "task" / str(tid) / "schedstat").write_text(text + "\n")
        minor, major = faults
        head = f"{pid} (pt_data) worker) {state} 1 1 1 0 -1 64"
        ticks = f"25 15 {waited[0]} {waited[1]}"
        (folder / "stat").write_text(f"{head} {minor} 0 {major} 0 {ticks} 20 0 1 0 {began} 1000 512 1 1\n")
        if io is not None:
            (folder / "io").write_text(f"rchar: {io[0]}\nwchar: 1\nsyscr: 1\nsyscw: 1\nread_bytes: {io[1]}\n")

    def remove(self, pid: int) -> None:
        rmtree(self.root / str(pid))

    def read(self, *pids: int, after_s: float = 1.0, senders: tuple[int, ...] = ()) -> None:
        self.now_s += after_s
        self.watch.read(pids, senders=senders)

    def states(self) -> WorkerStates:
        found = self.watch.states()
        assert found is not None
        assert found.on_cpu_share + found.run_queue_share + found.blocked_share == pytest.approx(1, abs=1e-12)
        assert min(found.on_cpu_share, found.run_queue_share, found.blocked_share) >= 0
        return found
