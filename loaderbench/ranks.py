"""Which rank of a distributed training a process is, by torch's launcher, and how many a configuration asks for."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
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


def rank_count(config: Mapping[str, Any]) -> int | None:
    """How many ranks its trials have; `None` for a trial of one process without a launcher."""
    found = config.get(RANKS)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def process_count(config: Mapping[str, Any]) -> int:
    """How many processes train in a trial of this configuration: its ranks, or one."""
    return rank_count(config) or 1


def local_rank() -> int:
    """The number of this process among the ranks of its machine; 0 outside of a job."""
    return int(os.environ.get("LOCAL_RANK", "0"))


def has_ranks() -> bool:
    """Whether this process is a rank of a process group, as torch's `DistributedSampler` asks."""
    from torch import distributed

    return bool(distributed.is_available() and distributed.is_initialized())


def this_host() -> str:
    """The name of this machine, or of this container."""
    return socket.gethostname()
