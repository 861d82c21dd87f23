"""The driver's library NVML, and its devices, matched to CUDA's numbering by UUID."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from loaderbench.records import Gpu

ONLY_NVIDIA = "NVML supports NVIDIA GPUs only"
_PREFIXES = ("GPU-", "MIG-")


class Nvml:
    """`library` is pynvml, initialized; `handles` and `why_not` have, by CUDA's index, what was found and what not.

    Without a GPU of NVIDIA's, NVML is not asked.
    """

    def __init__(self, gpus: Sequence[Gpu]) -> None:
        self.handles: dict[int, Any] = {}
        self.library: Any = None
        self.why_not = {gpu.index: f"no readings of {gpu.platform}: {ONLY_NVIDIA}" for gpu in gpus if not gpu.of_nvidia}
        gpus = [gpu for gpu in gpus if gpu.of_nvidia]
        if not gpus:
            return
        try:
            self.library = initialized_library()
        except Exception as error:  # a missing library, driver or right; each is a reason, none an end
            self.why_not |= {gpu.index: f"NVML is unavailable: {error}" for gpu in gpus}
            return
        for gpu in gpus:
            self._find(gpu)

    def _find(self, gpu: Gpu) -> None:
        names = _names(gpu, os.environ.get("CUDA_VISIBLE_DEVICES", ""))
        for name in names:
            try:
                self.handles[gpu.index] = self.library.nvmlDeviceGetHandleByUUID(name)
            except self.library.NVMLError as error:
                self.why_not[gpu.index] = f"NVML cannot find the device {names[0]}: {error}"
            else:
                self.why_not.pop(gpu.index, None)
                return
        if not names:
            self.why_not[gpu.index] = "this torch version reports no device UUID, which NVML needs"


def _names(gpu: Gpu, visible: str) -> list[str]:
    """What NVML may know a device by. Where torch reports no UUID, the names in `CUDA_VISIBLE_DEVICES` remain."""
    if gpu.uuid.startswith(_PREFIXES):
        return [gpu.uuid]
    if gpu.uuid:
        return [f"{prefix}{gpu.uuid}" for prefix in _PREFIXES]
    named = [name.strip() for name in visible.split(",")]
    return named[gpu.index : gpu.index + 1] if gpu.index < len(named) and named[gpu.index].startswith(_PREFIXES) else []


def count_gpus() -> int:
    """Devices that a process started here may use, without CUDA: enough to plan with, not to measure with."""
    try:
        count = int(initialized_library().nvmlDeviceGetCount())
    except Exception:  # no library, no driver: no device that could be used
        return 0
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return count if visible is None else min(count, len(list(takewhile(_is_device, visible.split(",")))))


def _is_device(name: str) -> bool:
    """CUDA passes over the first that is none, and all after it."""
    return name.strip().isdigit() or name.strip().startswith(_PREFIXES)


def initialized_library() -> Any:
    """The module `pynvml`, ready to be asked. Raises its `NVMLError`, or `ImportError`."""
    with warnings.catch_warnings():  # the deprecated package of the same name warns
        warnings.simplefilter("ignore")
        import pynvml
    pynvml.nvmlInit()
    return pynvml
