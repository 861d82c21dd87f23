"""Coordinates the ranks of a script that is tuned: rank 0 tunes on its share of the CPUs while the others wait."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loaderbench.cpu_lists import allowed_cpus
from loaderbench.monitors.machine import other_ranks
from loaderbench.new_files import write_whole
from loaderbench.ranks import rank_of_training, ranks_of_training
from loaderbench.script.recorded_processes import begun_pids
from loaderbench.stderr import say

DONE = "tuned"
LOOK_S = 0.1
PATIENCE_S = 30.0
"""Seconds to wait for another rank, which may have to evaluate or save first."""

REFUSED = "several-machines"
SEVERAL = "ranks on several machines cannot be tuned; start ranks on one machine only"
WITHOUT_BATCHES = "ranks-without-batches"
NOT_ALL = "a rank took no batches of this loader, or too late; the script was not tuned"


def shortest_step_s(folder: Path, own_s: float | None, name: str) -> float | None:
    """The shortest step of all ranks, in seconds per sample: the step of the rank that waits least for the others.

    Outside of a job, or on several machines, the step of this process. Every rank writes its own file. Rank 0 waits
    some seconds for those of all ranks. Every other rank waits for that of rank 0, and gets its own value back. If one
    does not come, its rank may take no batches itself, because rank 0 sends them. Then the loader `name` is not tuned.
    """
    rank, ranks = rank_of_training(), ranks_of_training() or 1
    if rank is None or ranks > _ranks_here(folder):
        return own_s
    write_whole(_step_file(folder, rank), "" if own_s is None else repr(own_s))
    files = {other: _step_file(folder, other) for other in ([0] if rank else range(ranks))}
    until_s = time.monotonic() + PATIENCE_S
    while not all(file.exists() for file in files.values()) and time.monotonic() < until_s:
        time.sleep(LOOK_S)
    absent = [other for other, file in files.items() if not file.exists()]
    if absent:
        if all_take_batches(folder):
            late = f"rank {absent[0]} took no batch of {name} within {PATIENCE_S:.0f} s"
            say(f"{late}: not tuned; the script continues")
        (folder / WITHOUT_BATCHES).touch()
    if rank or absent:
        return own_s
    texts = [file.read_text(encoding="ascii") for file in files.values()]
    return min((float(text) for text in texts if text), default=None)


def all_take_batches(folder: Path) -> bool:
    """Whether no rank was missed. One that takes no batches itself would wait for the others in a collective."""
    return not (folder / WITHOUT_BATCHES).exists()


def _step_file(folder: Path, rank: int) -> Path:
    return folder / f"step-of-rank-{rank}"


@contextmanager
def one_rank_tunes(folder: Path) -> Iterator[bool]:
    """Whether this process tunes: outside of a job, or as rank 0. Other ranks wait here until rank 0 is done.

    All ranks get here after the same batch, so none waits in a collective. If a rank was missed, none waits here.
    """
    rank = rank_of_training()
    if rank is None:
        yield True
    elif (ranks_of_training() or 1) > _ranks_here(folder):
        if os.environ.get("LOCAL_RANK", f"{rank}") == "0":
            say(SEVERAL)
        (folder / REFUSED).touch()
        yield False
    elif not all_take_batches(folder):
        yield False
    elif rank:
        while not (folder / DONE).exists() and all_take_batches(folder):
            time.sleep(LOOK_S)
        yield False
    else:
        try:
            with _own_share_of_cpus():
                yield True
        finally:
            (folder / DONE).touch()


def _ranks_here(folder: Path) -> int:
    """The number of ranks on this machine. If no launcher provides it, all processes that record are counted."""
    by_launcher = os.environ.get("LOCAL_WORLD_SIZE", "")
    return int(by_launcher) if by_launcher.isdigit() else len(begun_pids(folder))


@contextmanager
def _own_share_of_cpus() -> Iterator[None]:
    """Restrict this thread and its children to an equal share of the CPUs that the ranks use."""
    cpus, ranks = list(allowed_cpus()), 1 + len(other_ranks())
    share = cpus[: max(1, len(cpus) // ranks)]
    if ranks == 1 or not hasattr(os, "sched_setaffinity"):
        yield
        return
    say(f"rank 0 tunes on {len(share)} of {len(cpus)} CPUs; the other ranks wait")
    os.sched_setaffinity(0, share)
    try:
        yield
    finally:
        os.sched_setaffinity(0, cpus)
