"""Probes in a separate process what trials depend on: whether torch imports, and which GPUs can run a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from loaderbench.consumers import ConsumerKind, chosen_kinds, consumer_of, resolve_consumer
from loaderbench.errors import MissingError
from loaderbench.records import Gpu, Reasons
from loaderbench.runner.server import TrialServer
from loaderbench.suite import Suite
from loaderbench.targets import find_target

PROBE_TIMEOUT_S = 180.0
KERNEL_TIMEOUT_S = 60.0
_RUNS = "runs"
NO_DEVICE = "trials are forked from the script, and CUDA does not work in forked processes"

_REPAIR = "uv pip install --reinstall torch torchvision"


@dataclass(frozen=True)
class Probe:
    """Usable GPUs in CUDA's order, within `CUDA_VISIBLE_DEVICES`; `not_measured` says why there are none.

    `visible` counts all GPUs that CUDA shows, including unusable ones.
    """

    gpus: tuple[Gpu, ...]
    not_measured: Reasons
    visible: int = 0


def probe(server: TrialServer, suite: Suite | None = None, folder: Path | None = None) -> Probe:
    """Probe the machine, and look up the targets that a suite names.

    Processes that may not use a GPU are not probed. Raises `MissingError`, because every trial would fail: with the
    command that repairs it if torch or torchvision cannot be imported, or if a target or a model does not exist.
    """
    if not server.uses_devices:
        return Probe((), {"gpus": NO_DEVICE})
    names = targets_of(suite) if suite else []
    kind = _kind_on_gpu(suite) if suite else None
    answer = server.ask(_answer, names, folder or Path(), kind, timeout_s=PROBE_TIMEOUT_S)
    if isinstance(answer, MissingError):
        raise answer
    if isinstance(answer, str):
        raise MissingError(import_advice(answer))
    if answer is None:
        named = f" or the suite's {', '.join(names)}" if names else ""
        raise MissingError(f"importing torch{named} crashed or takes too long; for torch, try `{_REPAIR}`")
    found: Probe = answer
    for gpu in _gpus_of(suite, found.gpus):
        if why := _why_unusable(server, gpu):
            return Probe((), {"gpus": why}, found.visible)
    return found


def _gpus_of(suite: Suite | None, gpus: Sequence[Gpu]) -> Sequence[Gpu]:
    """The GPUs that trials use: the one that the suite names, or all."""
    if suite is None:
        return gpus[:1]
    kind = _kind_on_gpu(suite)
    index = int(kind.device_name.partition(":")[2] or 0)
    return gpus if kind.uses_all_gpus else gpus[index : index + 1]


def _kind_on_gpu(suite: Suite) -> ConsumerKind:
    """The consumer for a machine with a GPU."""
    return consumer_of(suite.consumer, resolve_consumer(suite.consumer, accelerator=True))


def _why_unusable(server: TrialServer, gpu: Gpu) -> str:
    """Launch a kernel in a separate process, since a bad GPU can hang or crash it; empty if the kernel runs."""
    answer = server.ask(_answer_kernel, gpu, timeout_s=KERNEL_TIMEOUT_S)
    if answer == _RUNS:
        return ""
    silent = f"no kernel runs on {gpu.device} ({gpu.name}): its driver crashed or hangs; see `loaderbench doctor --gpu`"
    return answer or silent


def import_advice(error: str) -> str:
    """The error from importing torch and torchvision, with the command that repairs it."""
    if "torchvision::nms" in error:
        return f"torch and torchvision builds do not match ({error}); reinstall both: `{_REPAIR}`"
    return f"cannot import torch and torchvision ({error}); try `{_REPAIR}`"


def targets_of(suite: Suite) -> list[str]:
    """The user code that a suite imports, by name."""
    stepped = [name for kind in chosen_kinds(suite.consumer) for name in consumer_of(suite.consumer, kind).targets()]
    return [*stepped, *suite.dataset.targets(suite.options)]


def _answer(pipe: Connection, names: list[str], folder: Path, kind: ConsumerKind | None) -> None:
    from loaderbench.runner import preload

    with suppress(BrokenPipeError):  # the parent is gone
        if preload.IMPORT_ERROR is not None:
            pipe.send(preload.IMPORT_ERROR)
        else:
            pipe.send(_first_missing(names, folder) or _devices_for(kind))


def _devices_for(kind: ConsumerKind | None) -> Probe | MissingError:
    """The GPUs, or why the consumer cannot be built. A consumer that needs a GPU is only built if there is one."""
    found = _devices()
    if kind is None or (kind.needs_accelerator and not found.gpus):
        return found
    why = kind.why_not_made()
    return MissingError(why) if why else found


def _first_missing(names: list[str], folder: Path) -> MissingError | None:
    return next((MissingError(why, name) for name in names if (why := _why_missing(name, folder))), None)


def _why_missing(name: str, folder: Path) -> str:
    """Why a target cannot be imported; empty if it can."""
    try:
        find_target(name, folder)
    except MissingError as error:
        return str(error)
    except SystemExit:
        why = 'its module exits when it is imported; move what it runs under `if __name__ == "__main__":`'
        return f"target {name}: {why}"
    except Exception as error:  # a user's module can raise anything
        return f"target {name}: import failed: {type(error).__name__}: {error}"
    return ""


def _devices() -> Probe:
    from loaderbench.gpu_checkup.usable import visible_gpus

    gpus, reasons = visible_gpus()
    return Probe(gpus, reasons, len(gpus))


def _answer_kernel(pipe: Connection, gpu: Gpu) -> None:
    from loaderbench.gpu_checkup.usable import why_unusable

    with suppress(BrokenPipeError):
        pipe.send(why_unusable(gpu) or _RUNS)
