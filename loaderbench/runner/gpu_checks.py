"""Checks a GPU in a separate process, so a driver that hangs or crashes becomes a failed check."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection

from loaderbench.errors import MissingError
from loaderbench.gpu_checkup.records import GpuCheck
from loaderbench.monitors import count_gpus
from loaderbench.records import Gpu
from loaderbench.runner.probe import PROBE_TIMEOUT_S, import_advice
from loaderbench.runner.server import TrialServer

CHECKS_TIMEOUT_S = 120.0
_DONE = "done"
_HINT = "see `loaderbench doctor`"


def find_gpu(server: TrialServer, index: int) -> Gpu:
    """The GPU with this index in CUDA's order. Raises `MissingError` with the reason if there is none."""
    answer = server.ask(_answer_gpus, timeout_s=PROBE_TIMEOUT_S)
    if isinstance(answer, str):
        raise MissingError(import_advice(answer))
    if answer is None:
        raise MissingError("no GPU to check: torch or CUDA crashed, or did not start")
    gpus, reasons = answer
    if not gpus:
        raise MissingError(f"no GPU to check: {_unusable_gpus()}{reasons.get('gpus', 'no reason known')}; {_HINT}")
    if index >= len(gpus):
        raise MissingError(f"no cuda:{index} to check: CUDA shows {len(gpus)}, up to cuda:{len(gpus) - 1}")
    found: Gpu = gpus[index]
    if found.kind != "cuda":
        raise MissingError(f"cannot check {found.device} ({found.name}): --gpu checks clocks of CUDA and ROCm devices")
    return found


def _unusable_gpus() -> str:
    """How many GPUs the driver reports, if any; this torch build then does not work with the driver."""
    of_driver = count_gpus()
    return f"torch finds none of the {of_driver} that the driver has: " if of_driver else ""


def check_gpu(server: TrialServer, gpu: Gpu) -> Iterator[GpuCheck]:
    """Yield each check as it finishes."""
    last = "the start of CUDA"
    try:
        for answer in server.ask_each(_answer_checks, gpu, timeout_s=CHECKS_TIMEOUT_S):
            if answer == _DONE:
                return
            last = answer.title
            yield answer
    except TimeoutError:
        yield _failed_check(f"no answer for {CHECKS_TIMEOUT_S:.0f} s after: {last}; the GPU or its driver hangs")
        return
    yield _failed_check(f"the checking process crashed after: {last}")


def _failed_check(said: str) -> GpuCheck:
    return GpuCheck(id="process", title="Process", state="failed", said=said)


def _answer_gpus(pipe: Connection) -> None:
    from loaderbench.gpu_checkup.usable import visible_gpus
    from loaderbench.runner import preload

    with suppress(BrokenPipeError):  # the parent is gone
        pipe.send(visible_gpus() if preload.IMPORT_ERROR is None else preload.IMPORT_ERROR)


def _answer_checks(pipe: Connection, gpu: Gpu) -> None:
    from loaderbench.gpu_checkup.checkup import check_device
    from loaderbench.gpu_checkup.device import CudaDevice
    from loaderbench.gpu_checkup.nvml import NvmlReadings

    with suppress(BrokenPipeError):
        for check in check_device(CudaDevice(gpu.index), NvmlReadings(gpu).read):
            pipe.send(check)
        pipe.send(_DONE)
