"""Which rank of a distributed training a process is, by torch's launcher, and how many a configuration asks for."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

RANKS = "ranks"
"""The axis: how many processes a trial has, as a distributed training has them."""

MOST_RANKS = 1_024


def rank_in(environment: Mapping[str, str]) -> int | None:
    """The rank of a process with this environment; `None` outside of a job."""
    found = environment.get("RANK", "") if "WORLD_SIZE" in environment else ""
    return int(found) if found.isdigit() else None


def this_rank() -> int | None:
    """That of this process."""
    return rank_in(os.environ)


def ranks_of_job() -> int | None:
    """How many ranks its training has; `None` outside of a job."""
    found = os.environ.get("WORLD_SIZE", "") if this_rank() is not None else ""
    return int(found) if found.isdigit() else None


def restarts_of_job() -> int:
    """How often torchrun has started all ranks anew, after one of them failed."""
    found = os.environ.get("TORCHELASTIC_RESTART_COUNT", "")
    return int(found) if found.isdigit() else 0


def rank_count(config: Mapping[str, Any]) -> int | None:
    """How many ranks its trials have; `None` for a trial of one process without a launcher."""
    found = config.get(RANKS)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def process_count(config: Mapping[str, Any]) -> int:
    """How many processes train in a trial of this configuration: its ranks, or one."""
    return rank_count(config) or 1


def local_rank() -> int:
    """The number of this process among the ranks of its machine; 0 outside of a job."""
    found = os.environ.get("LOCAL_RANK", "")
    return int(found) if found.isdigit() else 0


def has_ranks() -> bool:
    """Whether this process is a rank of a process group, as torch's `DistributedSampler` asks."""
    from torch import distributed

    return bool(distributed.is_available() and distributed.is_initialized())


def rank_of_training() -> int | None:
    """The rank by the launcher, or by torch's process group, also after a script has left that.

    Lightning's launcher sets no `RANK`, and a script with `torch.multiprocessing.spawn` need not.
    """
    by_launcher, group = this_rank(), _group()
    return by_launcher if by_launcher is not None or group is None else group[0]


def ranks_of_training() -> int | None:
    """How many ranks it has, by the same sources; `None` outside of a job."""
    by_launcher, group = ranks_of_job(), _group()
    return by_launcher if by_launcher is not None or group is None else group[1]


def rank_without_launcher() -> tuple[int, int] | None:
    """The rank by torch's process group, and how many there are, where no launcher tells; `None` for one process."""
    return _group() if this_rank() is None else None


_groups: dict[int, tuple[int, int]] = {}  # by process: its rank, and how many there are


def _group() -> tuple[int, int] | None:
    if "torch" in sys.modules and has_ranks():
        from torch import distributed

        if distributed.get_world_size() > 1:
            _groups[os.getpid()] = distributed.get_rank(), distributed.get_world_size()
    return _groups.get(os.getpid())


_finders: list[Callable[[], Sequence[int]]] = []


def find_ranks_by(find: Callable[[], Sequence[int]]) -> None:
    """Take the pids of other ranks on this machine from here, where no launcher tells which they are."""
    _finders[:] = [find]


def found_ranks() -> list[int]:
    """Pids of other ranks on this machine, as far as they can be found without a launcher."""
    return [pid for find in _finders for pid in find()] if rank_of_training() is not None else []


def this_host() -> str:
    """The name of this machine, or of this container."""
    return socket.gethostname()
