"""Options that each loading process applies before its first sample; each is an entry of `WORKER_OPTIONS`."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from loaderbench.loaders.backend import WorkerOption
from loaderbench.options import boolean, integer, one_of

MAX_THREADS = 1_024  # far above what any host uses
PILLOW_BLOCKS = 64  # blocks of 16 MiB that Pillow keeps for the next image
KEPT_BYTES = 1 << 30
_MOST_OF_OLD_GLIBC = 32 << 20  # before 2.35, a larger threshold is rejected
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # from glibc's malloc.h


def limit_threads(count: int) -> None:
    """Limit the threads of numerical libraries: BLAS and OpenMP with threadpoolctl, torch and OpenCV directly."""
    import torch
    from threadpoolctl import threadpool_limits

    threadpool_limits(count)
    torch.set_num_threads(count)
    if (cv2 := sys.modules.get("cv2")) is not None:
        cv2.setNumThreads(count if count > 1 else 0)


def use_all_cpus(_: Any) -> None:
    """Use every CPU that the system allows, even if a library has narrowed the affinity."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, range(os.cpu_count() or 1))


def keep_memory(_: Any) -> None:
    """Keep freed memory for the next image: in Pillow's block cache, and in glibc's malloc if present."""
    from PIL import Image

    Image.core.set_blocks_max(PILLOW_BLOCKS)  # type: ignore[attr-defined]
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        if not mallopt(_M_MMAP_THRESHOLD, KEPT_BYTES):
            mallopt(_M_MMAP_THRESHOLD, _MOST_OF_OLD_GLIBC)
        mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES)


SHARING = "worker_sharing"


def share_by(strategy: str) -> None:
    """Share batches through files in `/dev/shm`, or through file descriptors, several for each batch in flight."""
    import torch

    torch.multiprocessing.set_sharing_strategy(strategy)  # type: ignore[no-untyped-call]


WORKER_OPTIONS: dict[str, WorkerOption] = {
    "worker_threads": WorkerOption(
        integer(1, MAX_THREADS, or_null=True),
        limit_threads,
        lambda _: [
            "threadpool_limits(THREADS)  # BLAS and OpenMP",
            "torch.set_num_threads(THREADS)",
            "# with OpenCV also: cv2.setNumThreads(0)",
        ],
        lambda count: f"from threadpoolctl import threadpool_limits\n\nTHREADS = {count}\n",
    ),
    "worker_affinity": WorkerOption(
        one_of("inherit", "all"),
        use_all_cpus,
        lambda _: ["os.sched_setaffinity(0, range(os.cpu_count()))  # undo a narrower affinity set by a library"],
        nothing=("inherit", None),
    ),
    SHARING: WorkerOption(
        one_of("inherit", "file_descriptor", "file_system"),
        share_by,
        lambda strategy: [f'torch.multiprocessing.set_sharing_strategy("{strategy}")'],
        nothing=("inherit", None),
    ),
    "keep_memory": WorkerOption(
        boolean,
        keep_memory,
        lambda _: [
            "Image.core.set_blocks_max(64)  # or PILLOW_BLOCKS_MAX=64 in the environment",
            "ctypes.CDLL(None).mallopt(-3, 1 << 30) or ctypes.CDLL(None).mallopt(-3, 1 << 25)  # M_MMAP_THRESHOLD",
            "ctypes.CDLL(None).mallopt(-1, 1 << 30)  # glibc's M_TRIM_THRESHOLD",
        ],
    ),
}


@dataclass(frozen=True)
class WorkerSetup:
    """A `worker_init_fn` that applies the requested options, after calling `before`, the loader's own function."""

    asked: dict[str, Any] = field(default_factory=dict)
    before: Callable[[int], None] | None = None

    def __call__(self, worker_id: int) -> None:
        """Set up this process."""
        if self.before is not None:
            self.before(worker_id)
        for name, value in self.asked.items():
            WORKER_OPTIONS[name].set_up(value)


def worker_setup(arguments: Mapping[str, Any], before: Callable[[int], None] | None = None) -> WorkerSetup | None:
    """The setup that the options among `arguments` request; `None` if they request nothing."""
    asked = _requested(arguments)
    return WorkerSetup(asked, before) if asked else None


def setup_code(arguments: Mapping[str, Any]) -> str:
    """Code of `set_up`, which each worker calls first; empty if it does nothing."""
    asked = [(WORKER_OPTIONS[name], value) for name, value in _requested(arguments).items()]
    if not asked:
        return ""
    above = "import ctypes\nimport os\n\nimport torch\nfrom PIL import Image\n"
    above += "".join(option.code_above(value) for option, value in asked)
    body = "\n".join(f"    {line}" for option, value in asked for line in option.code(value))
    return f"{above}\n\ndef set_up(worker_id):\n{body}"


def _requested(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: arguments[name]
        for name, option in WORKER_OPTIONS.items()
        if name in arguments and not option.is_nothing(arguments[name])
    }
