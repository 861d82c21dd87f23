"""What each process that loads sets up for itself, before its first sample."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from PIL import Image

PILLOW_BLOCKS = 64  # of 16 MiB each, which Pillow keeps for the next image
KEPT_BYTES = 1 << 30
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h


@dataclass(frozen=True)
class WorkerSetup:
    """A `worker_init_fn`. `before` is one that the loader had already, which is called first.

    `threads`: of each library of numbers that is imported. `all_cpus`: may run wherever the system lets it, whatever a
    library has narrowed it to. `keep_memory`: freed memory is kept for the next image and not given back.
    """

    threads: int | None = None
    all_cpus: bool = False
    keep_memory: bool = False
    before: Callable[[int], None] | None = None

    def __call__(self, worker_id: int) -> None:
        """Set this process up."""
        if self.before is not None:
            self.before(worker_id)
        if self.threads is not None:
            _limit_threads(self.threads)
        if self.all_cpus and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, range(os.cpu_count() or 1))
        if self.keep_memory:
            _keep_memory()


def worker_setup(arguments: Mapping[str, Any], before: Callable[[int], None] | None = None) -> WorkerSetup | None:
    """What the options among `arguments` ask for; `None` where they ask for nothing."""
    threads, keep = arguments.get("worker_threads"), bool(arguments.get("keep_memory"))
    everywhere = arguments.get("worker_affinity") == "all"
    if threads is None and not keep and not everywhere:
        return None
    return WorkerSetup(threads, everywhere, keep, before)


def _limit_threads(count: int) -> None:
    """BLAS and OpenMP by threadpoolctl, torch and OpenCV by their own calls."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(count)
    torch.set_num_threads(count)
    if (cv2 := sys.modules.get("cv2")) is not None:
        cv2.setNumThreads(count if count > 1 else 0)


def _keep_memory() -> None:
    """Pillow's own store of blocks, and glibc's thresholds; where there is another C library, Pillow's alone."""
    Image.core.set_blocks_max(PILLOW_BLOCKS)  # type: ignore[attr-defined]
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, KEPT_BYTES)
        mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES)
