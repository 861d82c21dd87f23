"""Whether the training has other ranks that the command does not record."""

from __future__ import annotations

import os
import shlex
import sys

from loaderbench.ranks import rank_of_training, ranks_of_training, this_rank
from loaderbench.records import OnlyRank


def only_rank() -> OnlyRank | None:
    """The rank of this process, if no other is recorded with it; else `None`. Ranks of torchrun meet at the end."""
    rank, ranks = rank_of_training(), ranks_of_training() or 1
    if rank is None or ranks == 1 or os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        return None
    return OnlyRank(rank=rank, ranks=ranks, command=f"{_launcher()} {_arguments()}")


def _launcher() -> str:
    """The start of a command that runs and records all ranks."""
    if "SLURM_PROCID" in os.environ:
        return "srun --ntasks-per-node=1 loaderbench profile -- torchrun ..."
    return "loaderbench profile -- " + ("python" if this_rank() is None else "torchrun ...")


def _arguments() -> str:
    """The arguments of this interpreter: a script or module, with the script's own arguments."""
    found = sys.orig_argv[1:]
    return "SCRIPT" if not found or "-c" in found else shlex.join(found)
