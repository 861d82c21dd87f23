"""Explain in one line why ranks could not connect, or why a rank got no GPU."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping

_FAMILIES = ("RendezvousError", "DistError")
_NO_SUCH_GPU, _SAME_GPU = "invalid device ordinal", "Duplicate GPU detected"
_SAME = "the same command on every machine"


def why_no_ranks(error: BaseException | None) -> str:
    """The problem and the fix; empty if the error has another cause, such as a rank that failed."""
    chain = list(_chain(error))
    known = [one for one in chain if _is_known(one)]
    if not known:
        return ""
    text = " ".join(f"{one}" for one in chain)
    if "EADDRINUSE" in text:
        port = re.search(r"port: (\d+)", text)
        named = f"port {port[1]}" if port else "the port"
        return f"{named} is in use on this machine; choose another one on all machines"
    if joined := re.search(r"(\d+)/(\d+) clients joined", text):
        return f"{joined[1]} of {joined[2]} machines joined in time; start {_SAME}, or correct --nnodes"
    if place := re.search(r"connect to \(?\[?([^,\]]+)\]?, (\d+)\)?", text):
        return (
            f"no answer from {place[1]}:{place[2]}; start the training on that machine too, "
            "and check address, port and firewall"
        )
    if any(type(one).__name__ == "RendezvousTimeoutError" for one in known):
        return f"the other machines did not join in time; start {_SAME}, or correct --nnodes, address and port"
    first = next(iter(f"{known[-1]}".splitlines()), "")
    return f"the machines could not meet: {type(known[-1]).__name__}: {first}".rstrip(": ")


def why_no_gpu(error: BaseException | None) -> str:
    """The problem in this rank and the fix; empty if the error has another cause."""
    text = " ".join(f"{one}" for one in _chain(error))
    return _choice_of_gpu(text, os.environ, _gpu_count()) if _NO_SUCH_GPU in text or _SAME_GPU in text else ""


def _choice_of_gpu(text: str, environment: Mapping[str, str], gpus: int) -> str:
    numbers = [environment.get(name, "") for name in ("LOCAL_WORLD_SIZE", "RANK", "LOCAL_RANK")]
    if not gpus or not all(number.isdigit() for number in numbers):
        return ""
    ranks, rank, local_rank = map(int, numbers)
    if gpus == 1 <= local_rank and _SAME_GPU not in text and (visible := environment.get("CUDA_VISIBLE_DEVICES")):
        shows = f"CUDA_VISIBLE_DEVICES={visible} shows rank {rank} one GPU"
        return f"{shows}; if each rank has its own, use cuda:0 in it, else start one rank"
    if ranks > gpus:
        counted = "1 GPU" if gpus == 1 else f"{gpus} GPUs"
        return f"{ranks} ranks on a machine with {counted}; start one rank per GPU (--nproc-per-node {gpus})"
    if _SAME_GPU in text:
        return "two ranks use the same GPU; call torch.cuda.set_device(int(os.environ['LOCAL_RANK'])) in each"
    if rank >= gpus > local_rank:
        return f"no GPU {rank} on this machine; choose the GPU by LOCAL_RANK ({local_rank} here), not by RANK"
    return ""


def _gpu_count() -> int:
    """The number of GPUs that CUDA shows this process; 0 without torch imported."""
    torch = sys.modules.get("torch")
    return 0 if torch is None else int(torch.cuda.device_count())


def _is_known(error: BaseException) -> bool:
    return any(kind.__name__ in _FAMILIES for kind in type(error).__mro__)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, then its causes."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
