"""What in a suite needs a GPU: the consumer, and decoders that run on the GPU."""

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
    """Whether any trial needs a GPU. A consumer that `auto` chooses never does."""
    return needs_accelerator(suite.consumer) or bool(_left_to_gpu(suite))


def why_not_decoded(suite: Suite, gpus: Sequence[Gpu], why_none: str | None = None) -> str:
    """Why the machine's GPUs cannot decode for this suite, and what to do; empty if they can or need not.

    Every such trial would fail. `why_none` says why there is no GPU, if that is known.
    """
    left = _left_to_gpu(suite)
    if not left or (gpus and gpus[0].kind == "cuda"):
        return ""
    why = f"this machine has {gpus[0].device} ({gpus[0].name})" if gpus else why_none
    return f"{left}, and no CUDA device can be used{f' ({why})' if why else ''}; {_TO_DO}"


def _left_to_gpu(suite: Suite) -> str:
    """What a GPU has to decode in at least one configuration; empty if nothing, or if the step runs on the CPU."""
    kind = consumer_of(suite.consumer, resolve_consumer(suite.consumer, accelerator=True))
    if kind.device_name == CPU:
        return ""
    axes = list(suite.dataset.axes)
    configs = (dict(zip(axes, values, strict=True)) for values in product(*(_values(suite, axis) for axis in axes)))
    return next(filter(None, map(suite.dataset.why_not_on_device, configs)), "")


def _values(suite: Suite, axis: str) -> list[Any]:
    """All values that an option of the dataset takes in the suite."""
    swept = suite.sweep.get(axis, getattr(suite.dataset, axis))
    values = swept if isinstance(swept, list) else [swept]
    return [*values, suite.baseline[axis]] if axis in suite.baseline else values
