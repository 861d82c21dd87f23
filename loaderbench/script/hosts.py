"""Other ranks: their recordings, which come to rank 0 when a script ends, or that they are not recorded.

Recordings come from other machines, or from all other ranks. torchrun's agent on the first machine keeps a store while
the ranks run, and tells every rank its address. Source: PyTorch, `RendezvousHandler.use_agent_store`.
"""

from __future__ import annotations

import os
import pickle
import shlex
import sys
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

from loaderbench.ranks import rank_of_training, ranks_of_training, this_rank
from loaderbench.recorder.ranks import named_ranks
from loaderbench.records import OnlyRank
from loaderbench.script.recording import SENT, Recording, write_recordings

WAIT_S = 30.0
"""Seconds to wait for the other ranks, which end at about the same time as rank 0."""

_ATTEMPTS = "loaderbench/attempts"
_CHUNK_BYTES = 1 << 20  # the store accepts up to 8 MiB per value


@dataclass(frozen=True)
class Machines:
    """The position of this rank, and the address of the store that all ranks can reach.

    `together` ranks of this machine share one recording folder. `is_first`: rank 0 is among them.
    """

    rank: int
    ranks: int
    together: int
    address: str
    port: int
    is_first: bool

    @property
    def other_ranks(self) -> range:
        """Ranks whose folders rank 0 cannot see, if this is rank 0. torchrun numbers ranks machine by machine."""
        return range(self.together, self.ranks)


def find_machines(*, alone: bool) -> Machines | None:
    """The position of this rank; `None` if rank 0 can see all folders, or if the launcher keeps no store.

    `alone`: each rank has its own folder.
    """
    known, rank = os.environ, this_rank()
    if rank is None or known.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return None
    together = 1 if alone else int(known["LOCAL_WORLD_SIZE"])
    is_first = rank == 0 if alone else known["GROUP_RANK"] == "0"
    ranks, port = int(known["WORLD_SIZE"]), int(known["MASTER_PORT"])
    return Machines(rank, ranks, together, known["MASTER_ADDR"], port, is_first) if together < ranks else None


def begin_attempt(machines: Machines) -> None:
    """Count attempts in rank 0: after a restart, the store still has what ranks sent."""
    if machines.rank == 0:
        _store(machines).add(_ATTEMPTS, 1)


def _store(machines: Machines) -> Any:
    from torch import distributed

    wait, kind = timedelta(seconds=WAIT_S), vars(distributed)["TCPStore"]  # missing from torch's type stubs
    return kind(machines.address, machines.port, machines.ranks, is_master=False, timeout=wait)


def exchange(machines: Machines, found: Sequence[Recording], folder: Path, number: int = 0) -> str:
    """Send this rank's recordings to rank 0, which writes them alongside its own.

    Returns a line about recordings that did not arrive, or an empty string. `number` counts the recordings of a script,
    which can train several times: the store keeps all of them.
    """
    if machines.rank and machines.is_first:
        return ""
    store = _store(machines)
    prefix = f"loaderbench/{store.add(_ATTEMPTS, 0)}/{number}"
    if machines.is_first:
        return _receive_all(store, prefix, machines, folder)
    _send(store, f"{prefix}/{machines.rank}", found)
    (folder / SENT).write_text(machines.address)
    return ""


def _send(store: Any, key: str, found: Sequence[Recording]) -> None:
    data = zlib.compress(pickle.dumps(list(found)), 1)
    chunks = [data[begin : begin + _CHUNK_BYTES] for begin in range(0, len(data), _CHUNK_BYTES)]
    for number, chunk in enumerate(chunks):
        store.set(f"{key}/{number}", chunk)
    store.set(key, f"{len(chunks)} {version('loaderbench')}")


def _receive_all(store: Any, prefix: str, machines: Machines, folder: Path) -> str:
    """Write each rank's recordings as if the rank had run on this machine."""
    ends_s, missing = time.monotonic() + WAIT_S, list[int]()
    for rank in machines.other_ranks:
        left_s = max(0.1, ends_s - time.monotonic())
        try:
            store.wait([f"{prefix}/{rank}"], timedelta(seconds=left_s))
        except Exception:  # the exception type differs between versions of torch
            missing.append(rank)
            continue
        chunks, written = store.get(f"{prefix}/{rank}").decode().split()
        if written != version("loaderbench"):
            return f"rank {rank} has loaderbench {written}, rank 0 {version('loaderbench')}: install the same version"
        data = b"".join(store.get(f"{prefix}/{rank}/{number}") for number in range(int(chunks)))
        write_recordings(folder, pickle.loads(zlib.decompress(data)), name=f"rank{rank}")  # trusted like the training
    excluded = "it" if len(missing) == 1 else "them"
    return f"no data from {named_ranks(missing)}; the report excludes {excluded}" if missing else ""


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
