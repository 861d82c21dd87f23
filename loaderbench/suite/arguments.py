"""What a `DataLoader` argument and a dataset option may hold, known without importing torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from loaderbench.suite.problems import nearest

Check = Callable[[Any], "str | None"]
"""What is wrong with a value, or `None`."""


def integer(least: int, most: int, *, or_null: bool = False) -> Check:
    """Accept whole numbers from `least` to `most`."""

    def check(value: Any) -> str | None:
        if (value is None and or_null) or (type(value) is int and least <= value <= most):
            return None
        return f"{value!r} is not a whole number of {least} to {most}"

    return check


def number(value: Any) -> str | None:
    """Accept finite numbers of 0 or more."""
    if type(value) in {int, float} and 0 <= value < float("inf"):
        return None
    return f"{value!r} is not a number of 0 or more"


def boolean(value: Any) -> str | None:
    """Accept `true` and `false`."""
    return None if isinstance(value, bool) else f"{value!r} is neither true nor false"


def text(value: Any) -> str | None:
    """Accept text."""
    return None if isinstance(value, str) and value else f"{value!r} is not a text"


def one_of(*names: str | None) -> Check:
    """Accept the names given."""

    def check(value: Any) -> str | None:
        shown = ", ".join("null" if name is None else name for name in names)
        if value in names:
            return None
        return f"{value!r} is not one of {shown}{nearest(value, [name for name in names if name])}"

    return check


DECODERS = ("pillow", "pillow_draft", "pillow_lazy", "torchvision", "simplejpeg")
TRANSFORMS = ("imagenet_train", "imagenet_train_v2", "imagenet_train_scaled", "imagenet_eval", "to_tensor")


def recipe(value: Any) -> str | None:
    """Accept a recipe's name, or `package.module:callable`, which is looked up when a trial runs and not before."""
    if (what := text(value)) or ":" in value or value in TRANSFORMS:
        return what
    shown = ", ".join(TRANSFORMS)
    return f"{value!r} is not one of {shown}, nor package.module:callable{nearest(value, TRANSFORMS)}"


MAX_BATCH_SIZE = 1_000_000
MAX_WORKERS = MAX_PREFETCH = MAX_THREADS = 1_024  # far above any host's use, far below what brings one down

LOADER_ARGUMENTS: Mapping[str, Check] = {
    "batch_size": integer(1, MAX_BATCH_SIZE),
    "num_workers": integer(0, MAX_WORKERS),
    "pin_memory": boolean,
    "prefetch_factor": integer(1, MAX_PREFETCH, or_null=True),
    "persistent_workers": boolean,
    "drop_last": boolean,
    "shuffle": boolean,
    "timeout": number,
    "multiprocessing_context": one_of("fork", "forkserver", "spawn", None),
    "in_order": boolean,
    "pin_memory_device": text,
}

WORKER_OPTIONS: Mapping[str, Check] = {
    "worker_threads": integer(1, MAX_THREADS, or_null=True),
    "worker_affinity": one_of("inherit", "all"),
    "keep_memory": boolean,
}
"""What each process that loads sets up for itself, of any dataset: threads of its libraries, CPUs, its allocators."""

SMALLEST_SIDE, LARGEST_SIDE = 32, 8_192  # pixels

DATASET_OPTIONS: Mapping[str, Check] = {
    "decoder": one_of(*DECODERS),
    "transform": recipe,
    "normalize": one_of("worker", "device"),
    "presize": integer(SMALLEST_SIDE, LARGEST_SIDE, or_null=True),
    "image_cache": one_of("shared_memory", None),
}

NEEDS_WORKERS: Mapping[str, Any] = {
    "prefetch_factor": None,
    "persistent_workers": False,
    "multiprocessing_context": None,
    "timeout": 0,
}
"""Arguments torch refuses (or ignores) with `num_workers=0`, and the value that stands for leaving them out."""
