"""What the suites of `sweeps.py` name as their targets: datasets of the other families, by a name and arguments."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from PIL import Image
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info
from torchvision.datasets import ImageFolder
from torchvision.transforms.functional import to_pil_image

from benchmarks.diagnosis import lock_data, opaque_data, storage_data, stragglers, transport_data, work
from benchmarks.diagnosis.data import photo_paths, presized_photos, uneven_files
from benchmarks.diagnosis.decoding import V1
from benchmarks.diagnosis.epochs import SortedByLength
from benchmarks.diagnosis.image_data import Photos


def opaque(kind: str, ms: float = 2.0) -> Any:
    return getattr(opaque_data, kind)(ms)


def photos(decode: str = "pillow") -> Any:
    return Photos(photo_paths(), decode)


def stream(kind: str, ms: float = 2.0) -> Any:
    return opaque_data.Stream(opaque(kind, ms))


def latency(ms: float) -> Any:
    return ImageFolder(str(presized_photos()), V1, loader=storage_data.SlowLoader(ms / 1e3, 0.0))


def shared_device(mb_per_s: float) -> Any:
    return storage_data.SharedDevice(uneven_files(), mb_per_s * 1e6)


def locked(held: bool = True, ms: float = 2.0) -> Any:
    return lock_data.Locked(ms, held)


def sleepy(slow_s: float = 0.3) -> Any:
    return stragglers.Sleepy(0.5, slow_s)


def tiny() -> Any:
    return transport_data.InMemory()


def allocating(kept: bool = False) -> Any:
    return transport_data.Allocating(kept=kept)


class Timed(Dataset[Any]):
    """So many samples, each of `ms` of Python."""

    def __init__(self, samples: int, ms: float) -> None:
        self.samples, self.ms = samples, ms

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> Any:
        return work.sample(index, work.python(self.ms))


class EndingStream(IterableDataset[Any]):
    """The same samples, divided among workers."""

    def __init__(self, samples: Timed) -> None:
        self.samples = samples

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        yield from map(self.samples.__getitem__, range(first, len(self.samples), step))


def opens(seconds: float, _worker: int) -> None:
    """What a worker does first that opens a database or a large index."""
    time.sleep(seconds)


def short_epochs(
    num_workers: int,
    batch_size: int,
    *,
    batches: int,
    ms: float,
    opens_s: float = 0.0,
    rows: int = 0,
    stream: bool = False,
    persistent: bool = False,
) -> Any:
    """A loader whose epochs have so many batches. A sampler looks at all `rows` before each."""
    samples = Timed(batches * batch_size, ms)
    return DataLoader(
        EndingStream(samples) if stream else samples,
        batch_size,
        sampler=SortedByLength(rows, len(samples)) if rows else None,
        num_workers=num_workers,
        persistent_workers=persistent and num_workers > 0,
        worker_init_fn=partial(opens, opens_s) if opens_s else None,
    )


def small_crop(image: Any) -> Any:
    """A transform that costs little beside decoding."""
    return V1(image if isinstance(image, Image.Image) else to_pil_image(image[:, :96, :96]))
