"""Ranks of a script that is tuned: rank 0 tunes on its share of the CPUs, and the others wait for it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loaderbench.monitors.machine import allowed_cpus, other_ranks
from loaderbench.ranks import rank_of_training, ranks_of_training
from loaderbench.script.recorded_processes import begun_pids

DONE = "tuned"
LOOK_S = 0.1
REFUSED = "several-machines"
SEVERAL = "ranks on several machines cannot be tuned; start those of one machine"


@contextmanager
def one_rank_tunes(folder: Path) -> Iterator[bool]:
    """Whether this process is to tune: always outside of a job, and in rank 0. In all others, this waits for its end.

    Ranks are here after the same batch, so none waits in a collective.
    """
    rank = rank_of_training()
    if rank is None:
        yield True
    elif (ranks_of_training() or 1) > _ranks_here(folder):
        if os.environ.get("LOCAL_RANK", f"{rank}") == "0":
            print(f"loaderbench: {SEVERAL}", file=sys.stderr)
        (folder / REFUSED).touch()
        yield False
    elif rank:
        while not (folder / DONE).exists():
            time.sleep(LOOK_S)
        yield False
    else:
        try:
            with _own_share_of_cpus():
                yield True
        finally:
            (folder / DONE).touch()


def _ranks_here(folder: Path) -> int:
    """How many ranks this machine has. Where no launcher says so, all that have begun to record are counted."""
    by_launcher = os.environ.get("LOCAL_WORLD_SIZE", "")
    return int(by_launcher) if by_launcher.isdigit() else len(begun_pids(folder))


@contextmanager
def _own_share_of_cpus() -> Iterator[None]:
    """Let this thread, and what it starts, use as many CPUs as each of the ranks that share them can have."""
    cpus, ranks = list(allowed_cpus()), 1 + len(other_ranks())
    share = cpus[: max(1, len(cpus) // ranks)]
    if ranks == 1 or not hasattr(os, "sched_setaffinity"):
        yield
        return
    print(f"loaderbench: rank 0 tunes on {len(share)} of {len(cpus)} CPUs; the other ranks wait", file=sys.stderr)
    os.sched_setaffinity(0, share)
    try:
        yield
    finally:
        os.sched_setaffinity(0, cpus)
