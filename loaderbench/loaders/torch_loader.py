"""The backend `torch`: a `DataLoader`. What is known of it without importing torch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from loaderbench.loaders.backend import Batches, LoaderBackend
from loaderbench.loaders.worker_options import WORKER_OPTIONS, setup_code
from loaderbench.options import Check, boolean, integer, number, one_of, text
from loaderbench.records import Config, Scalar

MAX_BATCH_SIZE = 1_000_000
MAX_WORKERS = MAX_PREFETCH = 1_024  # far above any host's use, far below what brings one down

PREFETCH = 2
"""Batches that each worker has ready or under way, where nothing else is asked for: torch's own default."""

NEEDS_WORKERS: Config = {
    "prefetch_factor": None,
    "persistent_workers": False,
    "multiprocessing_context": None,
    "timeout": 0,
}
"""Arguments torch refuses (or ignores) with `num_workers=0`, and the value that stands for leaving them out."""

_NO_ACCELERATOR = "there is no accelerator, so that pinning memory does nothing; only false was measured"
_NO_WORKERS = "without workers torch refuses it, so that its values are one configuration where num_workers is 0"


def worker_ladder(cpus_allotted: float) -> list[Scalar]:
    """Worker counts worth trying on so many CPUs: none, one, a quarter, half, all, and half as many again."""
    cpus = max(1, math.ceil(cpus_allotted))
    return [*sorted({0, 1, cpus // 4, cpus // 2, cpus, cpus + math.ceil(cpus / 2)})]


class TorchLoader(LoaderBackend):
    """`torch.utils.data.DataLoader`, over a sampler that never ends."""

    called: ClassVar[str] = "DataLoader"
    arguments: ClassVar[Mapping[str, Check]] = {
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
    worker_options: ClassVar[Mapping[str, Check]] = {name: option.check for name, option in WORKER_OPTIONS.items()}
    auto: ClassVar[Mapping[str, Callable[[float], list[Scalar]]]] = {"num_workers": worker_ladder}
    today: ClassVar[Config] = {"num_workers": 0, "pin_memory": False}
    idle_without_accelerator: ClassVar[Mapping[str, tuple[Scalar, str]]] = {"pin_memory": (False, _NO_ACCELERATOR)}
    collapsing: ClassVar[Mapping[str, str]] = dict.fromkeys(NEEDS_WORKERS, _NO_WORKERS)

    def normalised(self, config: Config, fixed: Mapping[str, Any]) -> Config:
        """Give what needs workers its one value where there are none."""
        if config.get("num_workers", fixed.get("num_workers", 0)) != 0:
            return config
        return {axis: NEEDS_WORKERS.get(axis, value) for axis, value in config.items()}

    def workers(self, arguments: Mapping[str, Any]) -> int:
        """Worker processes."""
        count = arguments.get("num_workers")
        return count if isinstance(count, int) else 0

    def ahead(self, arguments: Mapping[str, Any]) -> int:
        """`prefetch_factor`, or torch's default."""
        factor = arguments.get("prefetch_factor")
        return factor if isinstance(factor, int) else PREFETCH

    def build(self, source: Any, arguments: Mapping[str, Any], *, seed: int) -> Batches:
        """Wrap a dataset, set what may be set on a loader, and leave any other iterable as it is."""
        from loaderbench.loaders.build import build_loader

        return build_loader(source, arguments, seed=seed)

    def code(self, arguments: Mapping[str, Any], comments: Sequence[str]) -> list[str]:
        """A `DataLoader`, and what each of its workers does first."""
        setup = setup_code(arguments)
        lines = [f"    {name}={value!r}," for name, value in arguments.items() if self._stated(name, value)]
        if setup and arguments.get("num_workers"):
            lines.append("    worker_init_fn=set_up,")
        head = ["from torch.utils.data import DataLoader", "", *comments]
        return [setup, "\n".join([*head, "loader = DataLoader(", "    dataset,", *lines, ")"])]

    def _stated(self, name: str, value: Any) -> bool:
        """Leave out what stands for "not given" without workers."""
        return name in self.arguments and (name not in NEEDS_WORKERS or value != NEEDS_WORKERS[name])
