"""The rank of a process in distributed training, by torch's launcher, and the number of ranks of a configuration."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

RANKS = "ranks"
"""The axis with the number of processes of a trial, as in distributed training."""

MOST_RANKS = 1_024

LAUNCHERS = (
    *("accelerate", "accelerate-launch", "accelerate.commands.launch"),
    *("torchrun", "torch.distributed.run", "deepspeed"),
)
"""Programs and modules that start the ranks of a training."""


def rank_in(environment: Mapping[str, str]) -> int | None:
    """The rank of a process with this environment; `None` outside a job."""
    found = environment.get("RANK", "") if "WORLD_SIZE" in environment else ""
    return int(found) if found.isdigit() else None


def this_rank() -> int | None:
    """The rank of this process."""
    return rank_in(os.environ)


def ranks_of_job() -> int | None:
    """The number of ranks of this training; `None` outside a job."""
    found = os.environ.get("WORLD_SIZE", "") if this_rank() is not None else ""
    return int(found) if found.isdigit() else None


def restarts_of_job() -> int:
    """How often torchrun has restarted all ranks after a failure."""
    found = os.environ.get("TORCHELASTIC_RESTART_COUNT", "")
    return int(found) if found.isdigit() else 0


def rank_count(config: Mapping[str, Any]) -> int | None:
    """The number of ranks of a configuration; `None` for a single process without a launcher."""
    found = config.get(RANKS)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def process_count(config: Mapping[str, Any]) -> int:
    """The number of training processes of a configuration: its ranks, or one."""
    return rank_count(config) or 1


def local_rank() -> int:
    """The rank of this process on its machine; 0 outside a job."""
    found = os.environ.get("LOCAL_RANK", "")
    return int(found) if found.isdigit() else 0


def has_ranks() -> bool:
    """Whether this process is a rank of a process group, which torch's `DistributedSampler` requires."""
    from torch import distributed

    return bool(distributed.is_available() and distributed.is_initialized())


def rank_and_ranks() -> tuple[int, int]:
    """The rank in the process group, and the number of ranks; 0 and 1 without a group."""
    from torch import distributed

    return (distributed.get_rank(), distributed.get_world_size()) if has_ranks() else (0, 1)


def check_enough(count: int, unit: str, ranks: int) -> None:
    """Raise `ValueError` for fewer units than ranks, because a rank would have nothing to load."""
    if count < ranks:
        counted = f"{count} {unit}{'' if count == 1 else 's'}"
        raise ValueError(f"{counted} for {ranks} ranks; use a larger dataset, or fewer ranks")


def rank_of_training() -> int | None:
    """The rank by the launcher or torch's process group, even after a script has left the group.

    Lightning's launcher does not set `RANK`, and neither may a script with `torch.multiprocessing.spawn`.
    """
    by_launcher, group = this_rank(), _group()
    return by_launcher if by_launcher is not None or group is None else group[0]


def ranks_of_training() -> int | None:
    """The number of ranks, by the same sources; `None` outside a job."""
    by_launcher, group = ranks_of_job(), _group()
    return by_launcher if by_launcher is not None or group is None else group[1]


_groups: dict[int, tuple[int, int]] = {}  # by process ID: the rank, and the number of ranks


def _group() -> tuple[int, int] | None:
    if "torch" in sys.modules and (found := rank_and_ranks())[1] > 1:
        _groups[os.getpid()] = found
    return _groups.get(os.getpid())


_finders: list[Callable[[], Sequence[int]]] = []


def find_ranks_by(find: Callable[[], Sequence[int]]) -> None:
    """Register the function that finds the process IDs of other ranks on this machine without a launcher."""
    _finders[:] = [find]


def found_ranks() -> list[int]:
    """Process IDs of other ranks on this machine, as far as they can be found without a launcher."""
    return [pid for find in _finders for pid in find()] if rank_of_training() is not None else []


def this_host() -> str:
    """The name of this machine or container."""
    return socket.gethostname()
