"""The backend `dali`: NVIDIA DALI reads, decodes and transforms images in its own threads.

If torch can use an NVIDIA GPU, DALI decodes and transforms there, and batches are in GPU memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, ClassVar, NamedTuple

from loaderbench.errors import BadImageError
from loaderbench.imagenet import AREA, ASPECT_RATIO, CROP, MEAN, SHORT_SIDE, STD
from loaderbench.loaders.backend import Batches
from loaderbench.loaders.image_files import ImageFiles, image_files
from loaderbench.loaders.thread_workers import Asked, ThreadLoader, threads_started
from loaderbench.loaders.torch_loader import endless_sampler
from loaderbench.ranks import has_ranks, local_rank, rank_and_ranks

QUEUED = 2
"""Number of batches ready or in flight: DALI's default."""

_POOL = "[DALI][TP"
"""Name prefix of the threads that decode and transform. Other DALI threads only wait for these, or read ahead."""

_NAMES_A_FILE = re.compile(r"(?:Failed to decode sample #\d+ : |File mapping failed: )(.+)")
_ENCOUNTERED = re.compile(r"encountered:\s*(.+)")


_PIPELINE = """\
import torch
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin.pytorch import DALIClassificationIterator, LastBatchPolicy

gpu = torch.cuda.current_device() if torch.cuda.is_available() else None
decoder = dict(device="cpu" if gpu is None else "mixed", adjust_orientation=False, jpeg_fancy_upsampling=True)
scale = dict({scale})
files, labels = zip(*dataset.samples)

@pipeline_def(batch_size={size}, num_threads={threads}, prefetch_queue_depth={queued}, device_id=gpu)
def pipeline():  # what `transform: {transform}` does
    order = dict(shuffle_after_epoch={shuffle}, pad_last_batch=True)
    encoded, label = fn.readers.file(files=files, labels=labels, name="files", **order)
{image}
    return fn.crop_mirror_normalize(image, {how}dtype=types.{dtype}, output_layout="CHW", **scale), label

class Batches(DALIClassificationIterator):
    def __next__(self):
        (batch,) = super().__next__()
        return batch["data"], batch["label"].flatten().long()
"""
_RANDOM_CROP = """\
    crop = dict(random_area=[0.08, 1], random_aspect_ratio=[3 / 4, 4 / 3])
    image = fn.resize(fn.decoders.image_random_crop(encoded, **crop, **decoder), size=[224, 224], antialias=True)
    flip = fn.random.coin_flip(probability=0.5)"""
_WHOLE = "    image = fn.decoders.image(encoded, **decoder)"
_SHORT_SIDE = f"{_WHOLE}\n    image = fn.resize(image, resize_shorter=256, antialias=True)"
_STEPS = {"imagenet_eval": (_SHORT_SIDE, "crop=[224, 224], "), "to_tensor": (_WHOLE, "")}
"""The lines that decode an image, and its crop arguments; other transforms crop at random."""

_IMAGENET = "mean=[255 * 0.485, 255 * 0.456, 255 * 0.406], std=[255 * 0.229, 255 * 0.224, 255 * 0.225]"
_LOADER = """\
loader = Batches(pipeline(), reader_name="files", last_batch_policy=LastBatchPolicy.{last}, auto_reset=True)"""


class Shard(NamedTuple):
    """The part of a rank, and the number of ranks."""

    rank: int = 0
    ranks: int = 1

    def size(self, samples: int) -> int:
        """How many of these samples DALI gives to the rank in an epoch."""
        return (self.rank + 1) * samples // self.ranks - self.rank * samples // self.ranks


class Order(NamedTuple):
    """The files that DALI reads, and their order.

    DALI shuffles its list after each epoch in the same way with any seed, so all ranks agree without communication.
    """

    samples: Sequence[tuple[str, int]]
    shard: Shard = Shard()
    shuffle: bool = False

    def read(self) -> tuple[Any, Any]:
        """Return encoded files and labels, while a pipeline is being defined."""
        from nvidia.dali import fn

        encoded, labels = fn.readers.file(
            files=[path for path, _ in self.samples],
            labels=[label for _, label in self.samples],
            shuffle_after_epoch=self.shuffle,
            stick_to_shard=not self.shuffle,
            shard_id=self.shard.rank,
            num_shards=self.shard.ranks,
        )
        return encoded, labels


class Dali(ThreadLoader):
    """NVIDIA DALI: a pipeline of C++ threads that need no GIL. For a random crop, they decode only the crop."""

    display_name: ClassVar[str] = "DALI"
    needs: ClassVar[str] = "nvidia.dali"
    install: ClassVar[str] = "uv pip install nvidia-dali-cuda130"
    decodes: ClassVar[bool] = True

    def queued(self, arguments: Mapping[str, Any]) -> int:
        """Batches of all threads, which work together on one batch at a time."""
        return super().queued({**arguments, "queued": arguments.get("queued") or QUEUED})

    def build(self, source: Any, arguments: Mapping[str, Any], *, seed: int) -> Batches:
        """Read a folder of images. Raises `TypeError` for any other source, `ValueError` for fewer files than ranks."""
        files = image_files(source, "dali", OPERATIONS)
        endless_sampler(source, arguments, seed)  # raises the same errors as for torch
        asked = self.asked(arguments, seed)
        order = _order(files.samples, asked)
        made = DaliBatches(files, order, asked)
        return self.batches(made, arguments, order.shard.size(len(files.samples)))

    def code(self, arguments: Mapping[str, Any], comments: Sequence[str]) -> list[str]:
        """Code of a pipeline over the files of `dataset`, and of its batches, epoch by epoch."""
        found, shuffle = self.prefetch(arguments), bool(arguments.get("shuffle"))
        numbers = {"size": found.batch_size, "threads": found.workers, "queued": self.queued(arguments)}
        last = "DROP" if arguments.get("drop_last") else "PARTIAL"
        pipeline = _PIPELINE.format(**numbers, **_recipe(arguments), shuffle=shuffle)
        return [pipeline, "\n".join([*comments, _LOADER.format(last=last)])]


def _recipe(arguments: Mapping[str, Any]) -> dict[str, str]:
    """The named transform, as lines of a program."""
    name, normalizes = str(arguments.get("transform", "imagenet_train")), arguments.get("normalize") != "device"
    image, how = _STEPS.get(name, (_RANDOM_CROP, "mirror=flip, "))
    scale = _IMAGENET if name != "to_tensor" else "mean=[0.0], std=[255.0]"
    return {
        "transform": name,
        "image": image,
        "how": how,
        "scale": scale if normalizes else "mean=[0.0], std=[1.0]",
        "dtype": "FLOAT" if normalizes else "UINT8",
    }


class DaliBatches:
    """Endless batches, each `[images, labels]`."""

    def __init__(self, files: ImageFiles, order: Order, asked: Asked) -> None:
        self._order, self._batch_size, self._given = order, asked.batch_size, 0
        with threads_started() as self._threads:
            self._pipeline = _pipeline(files, order, asked)

    def __iter__(self) -> Iterator[list[Any]]:
        while self._pipeline is not None:
            yield self._next()

    def _next(self) -> list[Any]:
        try:
            images, labels = self._pipeline.run()
        except RuntimeError as error:
            message = str(error)
        else:
            self._given += 1
            return [_stacked(images), _stacked(labels).flatten().long()]
        self.end()  # a pipeline is unusable after an error; frames of the old exception would keep it alive
        raise _as_exception(message, self._order, self._batch_size, self._given)

    def threads(self) -> list[int]:
        """Kernel IDs of the threads that decode and transform."""
        return [thread for thread in self._threads if _name_of(thread).startswith(_POOL)]

    def end(self) -> None:
        """End the threads: only the destructor of a pipeline does that."""
        self._pipeline = None
        self._threads = []


def _name_of(thread: int) -> str:
    try:
        return Path(f"/proc/self/task/{thread}/comm").read_text(encoding="utf-8")
    except OSError:
        return ""


def _stacked(batch: Any) -> Any:
    """Return one tensor in DALI's memory, which DALI's default executor reuses only after torch has freed the tensor.

    Raises torch's `RuntimeError` for samples that differ in shape.
    """
    import torch
    from torch.utils.dlpack import from_dlpack

    if batch.is_dense_tensor():
        return from_dlpack(batch.as_tensor())
    return torch.stack([from_dlpack(sample) for sample in batch])


def _order(samples: Sequence[tuple[str, int]], asked: Asked) -> Order:
    """The order of this rank. Each seed starts with a different order of the list, as DALI's shuffle takes no seed."""
    shuffled = Random(asked.seed).sample(samples, len(samples)) if asked.shuffle else samples
    return Order(shuffled, Shard(*rank_and_ranks()), asked.shuffle)


def _device() -> int | None:
    """The index of the NVIDIA GPU to decode on, if there is one."""
    import torch

    if torch.version.cuda is None or not torch.cuda.is_available():
        return None
    return local_rank() if has_ranks() else torch.cuda.current_device()


def _pipeline(files: ImageFiles, order: Order, asked: Asked) -> Any:
    """Build all operations, with their threads. Each rank draws different crops."""
    from nvidia.dali import Pipeline

    device = _device()
    made = Pipeline(
        batch_size=asked.batch_size,
        num_threads=asked.threads,
        device_id=device,
        seed=asked.seed * order.shard.ranks + order.shard.rank,
        prefetch_queue_depth=asked.queued,
        exec_dynamic=True,
    )
    with made:
        encoded, labels = order.read()
        images = OPERATIONS[files.transform](encoded, "cpu" if device is None else "mixed", files.normalizes)
        made.set_outputs(images, labels)
    made.build()
    return made


def _train(encoded: Any, device: str, normalize: bool) -> Any:
    """Random crop, resize, flip. The crop is drawn first, and only the crop is decoded."""
    from nvidia.dali import fn

    crops = fn.decoders.image_random_crop(
        encoded,
        device=device,
        adjust_orientation=False,
        jpeg_fancy_upsampling=True,
        random_area=[*AREA],
        random_aspect_ratio=[*ASPECT_RATIO],
    )
    resized = fn.resize(crops, size=[CROP, CROP], antialias=True)
    return _planes(resized, normalize, mirror=fn.random.coin_flip(probability=0.5))


def _eval(encoded: Any, device: str, normalize: bool) -> Any:
    """Resize the short side and crop the center, with torchvision's rounding. Only the crop is resized."""
    from nvidia.dali import fn, math, types

    images = _decoded(encoded, device)
    sides = [images.shape()[axis] for axis in (0, 1)]
    ends = [_central(side, SHORT_SIDE * side // math.min(*sides)) for side in sides]
    begin, end = (fn.cast(fn.stack(*pair), dtype=types.FLOAT) for pair in zip(*ends, strict=True))
    return _planes(fn.resize(images, size=[CROP, CROP], roi_start=begin, roi_end=end, antialias=True), normalize)


def _central(side: Any, resized: Any) -> tuple[Any, Any]:
    """Start and end of a center crop, in pixels before resizing. Halves are rounded to even numbers."""
    over = resized - CROP
    begin = over // 2
    begin += (over - 2 * begin) * (begin - begin // 2 * 2)
    return begin * side / resized, (begin + CROP) * side / resized


def _to_tensor(encoded: Any, device: str, normalize: bool) -> Any:
    """Only decode; values from 0 to 1 if normalized."""
    return _planes(_decoded(encoded, device), normalize, mean=[0.0], std=[255.0])


def _decoded(encoded: Any, device: str) -> Any:
    """Decode as Pillow does: no EXIF rotation, interpolated chroma."""
    from nvidia.dali import fn

    return fn.decoders.image(encoded, device=device, adjust_orientation=False, jpeg_fancy_upsampling=True)


def _planes(images: Any, normalize: bool, **how: Any) -> Any:
    """Channels first: normalized float32, or uint8."""
    from nvidia.dali import fn, types

    scale = {"mean": [255 * mean for mean in MEAN], "std": [255 * std for std in STD], **how}
    if not normalize:
        scale |= {"mean": [0.0], "std": [1.0]}
    return fn.crop_mirror_normalize(
        images, dtype=types.FLOAT if normalize else types.UINT8, output_layout="CHW", **scale
    )


OPERATIONS: Mapping[str, Callable[[Any, str, bool], Any]] = {
    "imagenet_train": _train,
    "imagenet_train_v2": _train,
    "imagenet_train_scaled": _train,
    "imagenet_train_region": _train,
    "imagenet_eval": _eval,
    "to_tensor": _to_tensor,
}
"""Functions by transform name; each takes encoded files, the decoder's device, and whether to normalize."""


def _as_exception(message: str, order: Order, batch_size: int, given: int) -> Exception:
    """The error for the batch after `given` batches, with the path of the file that DALI rejects, if there is one."""
    named = _NAMES_A_FILE.search(message)
    path = named[1] if named else _first_rejected(_files_of(order, batch_size, given))
    if path is None:
        return RuntimeError(message)
    what = _ENCOUNTERED.search(message)
    return BadImageError(f"{path}: {_pillow_error(path) or 'DALI cannot decode it: ' + (what[1] if what else message)}")


def _files_of(order: Order, batch_size: int, number: int) -> list[str]:
    """The files of batch `number`, counted from 0. DALI reads them again in the same order, without decoding."""
    from nvidia.dali import Pipeline, fn

    reading = Pipeline(batch_size=batch_size, num_threads=1, device_id=None, prefetch_queue_depth=1)
    with reading:
        encoded, _ = order.read()
        reading.set_outputs(fn.get_property(encoded, key="source_info"))
    for _ in range(number):
        reading.run()
    (paths,) = reading.run()
    return [bytes(paths.at(index)).decode() for index in range(batch_size)]


def _first_rejected(paths: Sequence[str]) -> str | None:
    """The first of these files that DALI cannot decode."""
    from nvidia.dali import Pipeline

    decoding = Pipeline(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
    with decoding:
        decoding.set_outputs(_decoded(Order([(path, 0) for path in paths]).read()[0], "cpu"))
    for path in paths:
        try:
            decoding.run()
        except RuntimeError:
            return path
    return None


def _pillow_error(path: str) -> str:
    """Pillow's error for a file; empty if Pillow can decode it."""
    from PIL import Image

    try:
        with Image.open(path) as image:
            image.load()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""
