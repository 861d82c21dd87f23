"""Which rank of a distributed training a process is, by what torch's launcher puts into its environment."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping


def rank_in(environment: Mapping[str, str]) -> int | None:
    """The rank of a process with this environment; `None` outside of a job."""
    found = environment.get("RANK", "") if "WORLD_SIZE" in environment else ""
    return int(found) if found.isdigit() else None


def this_rank() -> int | None:
    """That of this process."""
    return rank_in(os.environ)


def this_host() -> str:
    """The name of this machine, or of this container."""
    return socket.gethostname()
