"""What of a suite cannot run without a GPU: its consumer, and decoders that leave the files to the GPU."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from loaderbench.consumers import consumer_of, needs_accelerator, resolve_consumer
from loaderbench.consumers.step_options import CPU
from loaderbench.records import Gpu
from loaderbench.suite import Suite

_TO_DO = "use another decoder, or decode on the CPU in the training step with consumer: {kind: model, device: cpu}"


def needs_gpu(suite: Suite) -> bool:
    """Whether some of its trials need a GPU; a consumer that `auto` chooses never does."""
    return needs_accelerator(suite.consumer) or bool(_left_to_gpu(suite))


def why_not_decoded(suite: Suite, gpus: Sequence[Gpu], why_none: str | None = None) -> str:
    """Why no GPU of a machine can decode what the suite leaves to one, with what to do; empty where one can.

    Each of those trials would fail by it. `why_none` is the reason for no GPU, if it is known.
    """
    left = _left_to_gpu(suite)
    if not left or (gpus and gpus[0].kind == "cuda"):
        return ""
    why = f"this machine has {gpus[0].device} ({gpus[0].name})" if gpus else why_none
    return f"{left}, and no CUDA device can be used{f' ({why})' if why else ''}; {_TO_DO}"


def _left_to_gpu(suite: Suite) -> str:
    """What workers leave to a GPU in some configuration; empty where the step computes on the CPU, or for nothing."""
    kind = consumer_of(suite.consumer, resolve_consumer(suite.consumer, accelerator=True))
    if kind.device_name == CPU:
        return ""
    axes = list(suite.dataset.axes)
    configs = (dict(zip(axes, values, strict=True)) for values in product(*(_values(suite, axis) for axis in axes)))
    return next(filter(None, map(suite.dataset.why_not_on_device, configs)), "")


def _values(suite: Suite, axis: str) -> list[Any]:
    """All that an option of the dataset is in some configuration."""
    swept = suite.sweep.get(axis, getattr(suite.dataset, axis))
    values = swept if isinstance(swept, list) else [swept]
    return [*values, suite.baseline[axis]] if axis in suite.baseline else values
