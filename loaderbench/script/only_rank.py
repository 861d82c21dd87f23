"""Whether the training has other ranks that the command does not record."""

from __future__ import annotations

import shlex
import sys

from loaderbench.ranks import rank_without_launcher
from loaderbench.records import OnlyRank


def only_rank() -> OnlyRank | None:
    """The rank of this process, if its script started the other ranks by itself, like Lightning; else `None`."""
    found = rank_without_launcher()
    if found is None:
        return None
    rank, ranks = found
    return OnlyRank(rank=rank, ranks=ranks, command=f"loaderbench profile -- python {_arguments()}")


def _arguments() -> str:
    """The arguments of this interpreter: a script or module, with the script's own arguments."""
    found = sys.orig_argv[1:]
    return "SCRIPT" if not found or "-c" in found else shlex.join(found)
