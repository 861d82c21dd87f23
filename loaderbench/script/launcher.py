"""Why ranks could not start, or got no GPU: noted in the processes of torch's launcher, read by the command.

A launcher waits for other machines silently, and ends with a long traceback if they never appear.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from loaderbench.rank_errors import why_no_gpu, why_no_ranks
from loaderbench.stderr import say

HOME_OF_LAUNCHER = "torch.distributed.launcher.api"
LATE_S = 60.0
LOOK_S = 1.0

_LAUNCHING, _BEGUN, _NO_RANK, _NO_GPU = "launching", "rank-begun", "no-rank", "no-gpu"


def is_rank() -> bool:
    """Whether torch's launcher started this process. A cluster may set `RANK` for the launcher, too."""
    return "LOCAL_RANK" in os.environ


def note_rank(folder: Path) -> None:
    """Note that this process starts as a rank. If it ends because it got no GPU, a file records the reason."""
    (folder / _BEGUN).touch()
    atexit.register(_note_failure, folder / _NO_GPU, why_no_gpu, os.getpid())


def note_launcher(folder: Path) -> None:
    """Note that this process launches ranks. If it ends because they could not meet, a file records the reason."""
    (folder / _LAUNCHING).touch()
    atexit.register(_note_failure, folder / _NO_RANK, why_no_ranks, os.getpid())


def _note_failure(file: Path, why: Callable[[BaseException | None], str], pid: int) -> None:
    reason = why(getattr(sys, "last_value", None)) if os.getpid() == pid else ""
    if reason:
        file.write_text(reason)


def read_failure(folder: Path) -> str:
    """Why no rank started, or why a rank got no GPU; empty if neither happened, or if the reason is unknown."""
    begun = (folder / _BEGUN).exists()
    file, what = (folder / _NO_GPU, "a rank got no GPU") if begun else (folder / _NO_RANK, "no rank started")
    return f"{what}: {file.read_text()}" if file.exists() else ""


@contextmanager
def said_if_late(folder: Path) -> Iterator[None]:
    """Print a line if a launcher has been waiting for long and no rank has started."""
    over = threading.Event()
    threading.Thread(target=_warn_if_late, args=(folder, over), name="loaderbench-launcher", daemon=True).start()
    try:
        yield
    finally:
        over.set()


def _warn_if_late(folder: Path, over: threading.Event) -> None:
    waited_s = 0.0
    while not over.wait(LOOK_S) and not (folder / _BEGUN).exists():
        waited_s += LOOK_S if (folder / _LAUNCHING).exists() else 0.0
        if waited_s >= LATE_S:
            say(
                f"no rank started within {waited_s:.0f} s: torchrun is waiting for other machines. "
                "Start the same command on each; check --nnodes, address and port."
            )
            return
