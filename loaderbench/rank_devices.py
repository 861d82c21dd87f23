"""Why a rank of a training failed to get a GPU of its own, in one line."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from loaderbench.rendezvous import chain_of

_MISSING = "invalid device ordinal"
_SHARED = "Duplicate GPU detected"


def why_no_gpu(error: BaseException | None) -> str:
    """What went wrong in this rank, and what to do; empty where the error has another cause."""
    said = " ".join(f"{one}" for one in chain_of(error))
    return _advice(said, os.environ, _gpu_count()) if _MISSING in said or _SHARED in said else ""


def _advice(said: str, environment: Mapping[str, str], gpus: int) -> str:
    numbers = [environment.get(name, "") for name in ("LOCAL_WORLD_SIZE", "RANK", "LOCAL_RANK")]
    if not gpus or not all(number.isdigit() for number in numbers):
        return ""
    ranks, rank, local_rank = map(int, numbers)
    if ranks > gpus:
        counted = "1 GPU" if gpus == 1 else f"{gpus} GPUs"
        return f"{ranks} ranks on a machine with {counted}; start one rank per GPU (--nproc-per-node {gpus})"
    if _SHARED in said:
        return "two ranks use the same GPU; call torch.cuda.set_device(int(os.environ['LOCAL_RANK'])) in each"
    if rank >= gpus > local_rank:
        return f"no GPU {rank} on this machine; choose the GPU by LOCAL_RANK ({local_rank} here), not by RANK"
    return ""


def _gpu_count() -> int:
    """How many GPUs CUDA shows this process; 0 where torch is not imported."""
    torch = sys.modules.get("torch")
    return 0 if torch is None else int(torch.cuda.device_count())
