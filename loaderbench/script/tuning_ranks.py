"""Ranks of a script that is tuned: rank 0 tunes on its share of the CPUs, and the others wait for it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loaderbench.monitors.machine import allowed_cpus, other_ranks
from loaderbench.ranks import this_rank

DONE = "tuned"
LOOK_S = 0.1
_SEVERAL = "ranks on several machines cannot be tuned; start those of one machine"


@contextmanager
def one_rank_tunes(folder: Path) -> Iterator[bool]:
    """Whether this process is to tune: always outside of a job, and in rank 0. In all others, this waits for its end.

    Ranks are here after the same batch, so none waits in a collective.
    """
    rank = this_rank()
    if rank is None:
        yield True
    elif os.environ.get("LOCAL_WORLD_SIZE", "1") != os.environ.get("WORLD_SIZE", "1"):
        if os.environ.get("LOCAL_RANK") == "0":
            print(f"loaderbench: {_SEVERAL}", file=sys.stderr)
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
