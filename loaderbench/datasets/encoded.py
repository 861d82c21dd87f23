"""Encoded files that workers read and the device decodes: samples, batches, and the processing on the device.

`decoder: device` moves decoding, cropping and stacking out of the workers. These steps run on the device of the
training step, as part of the step. `decoder: dali` does the same with DALI's decoder.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from PIL import Image
from torch.utils.data import Dataset
from torch.utils.data._utils.collate import default_collate_fn_map

from loaderbench.datasets.dali import DaliJpegs
from loaderbench.datasets.image_samples import Transform
from loaderbench.errors import BadImageError
from loaderbench.formats import ReadEncoded
from loaderbench.imagenet import MEAN, STD

Decode = Callable[[Sequence[torch.Tensor]], list[torch.Tensor]]
"""Decodes JPEGs to RGB. Raises `RuntimeError` if it cannot decode one of them."""
_JPEG = (0xFF, 0xD8, 0xFF)
"""The first bytes of every JPEG. Other files are decoded on the CPU."""


class EncodedImage(NamedTuple):
    """The contents of a file."""

    data: torch.Tensor


class EncodedImages(NamedTuple):
    """The files of a batch, concatenated in one tensor. `sizes` are their lengths in bytes."""

    sizes: torch.Tensor
    data: torch.Tensor

    def files(self) -> list[torch.Tensor]:
        """The contents of each file, without a copy."""
        return list(torch.tensor_split(self.data, self.sizes.cumsum(0)[:-1]))


class EncodedSamples(Dataset[tuple[EncodedImage, int]]):
    """Read the encoded file of a sample on access. torch's default collate function packs a batch.

    `reader` reads a copy in another format; `None` reads the files themselves.
    """

    def __init__(self, samples: Sequence[tuple[str, int]], reader: ReadEncoded | None = None) -> None:
        self.samples, self.reader = samples, reader

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[EncodedImage, int]:
        path, label = self.samples[index]
        data = Path(path).read_bytes() if self.reader is None else self.reader(index)
        if not data:
            raise BadImageError(f"{path}: the file is empty")
        return EncodedImage(torch.frombuffer(bytearray(data), dtype=torch.uint8)), label


def _pack(images: Sequence[EncodedImage], *, collate_fn_map: Any = None) -> EncodedImages:  # noqa: ARG001 - torch's
    files = [image.data for image in images]
    return EncodedImages(torch.tensor([len(file) for file in files]), torch.cat(files))


default_collate_fn_map[EncodedImage] = _pack


class DecodedOnDevice:
    """Move a batch of files to a device, decode and transform each image there, and stack them.

    `decoder` is a key of `DECODERS`, and `transform` maps uint8 tensors to uint8 tensors. With `normalize`, images are
    floats: standardized, or between 0 and 1. Raises the decoder's error if it cannot decode on this device at all.
    Files that only this decoder cannot decode (not a JPEG, or CMYK) are decoded on the CPU and counted.
    """

    def __init__(
        self, device: str, transform: Transform, *, normalize: bool, standardize: bool = True, decoder: str = "device"
    ) -> None:
        named = torch.device(device)
        has_index = named.type != "cuda" or named.index is not None
        self._device = named if has_index else torch.device("cuda", torch.cuda.current_device())
        self._transform, self._normalize = transform, normalize
        scale = (MEAN, STD) if standardize else ((0.0,) * 3, (1.0,) * 3)
        self._mean, self._std = (torch.tensor(each, device=self._device).view(3, 1, 1) * 255 for each in scale)
        self._on_cpu = self._seen = 0
        self._decode = DECODERS[decoder](self._device)
        self._decode([_small_jpeg()])

    @property
    def note(self) -> str:
        """How many images the device could not decode; empty if it decoded all of them."""
        if not self._on_cpu:
            return ""
        return f"{self._on_cpu:,} of {self._seen:,} images were decoded on the CPU: no JPEG, or CMYK"

    def __call__(self, batch: Any) -> Any:
        """Return images on the device, and labels where they already are."""
        encoded, labels = batch
        images = torch.stack([self._transform(image) for image in self.decoded(encoded.files())])
        return [(images.float() - self._mean) / self._std if self._normalize else images, labels]

    def decoded(self, files: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Decode files to images on the device: uint8, shape (3, height, width)."""
        self._seen += len(files)
        if all(map(_is_jpeg, files)):
            try:
                return self._decode(files)
            except torch.cuda.OutOfMemoryError:
                raise
            except RuntimeError:  # a single file that the device cannot decode fails the batch
                pass
        return [self._decoded(file) for file in files]

    def _decoded(self, file: torch.Tensor) -> torch.Tensor:
        if _is_jpeg(file):
            try:
                return self._decode([file])[0]
            except torch.cuda.OutOfMemoryError:
                raise
            except RuntimeError:  # if the device itself has failed, the copy below raises again
                pass
        self._on_cpu += 1
        return _decode_with_pillow(file).to(self._device)


def decode_jpegs(files: Sequence[torch.Tensor], device: torch.device) -> list[torch.Tensor]:
    """Decode JPEGs to RGB on a device.

    torchvision decodes them, in one call if its version takes a list. TorchCodec decodes them if torchvision no longer
    does. Raises the decoder's `RuntimeError`, or `ImportError` if neither is installed. Work queued on the current
    stream can use the images: none is overwritten before that work is done.
    """
    if device.type not in ("cuda", "cpu"):  # torchvision would silently decode on the CPU
        raise RuntimeError(f"decoder: device needs CUDA, and this device is {device.type}")
    if device.type == "cpu":
        return _by_library(files, device)
    using, decoding = torch.cuda.current_stream(device), _decoding_stream(device)
    with torch.cuda.stream(decoding):
        images = _by_library(files, device)
    using.wait_stream(decoding)
    for image in images:
        image.record_stream(using)
    return images


@cache
def _decoding_stream(device: torch.device) -> torch.cuda.Stream:
    """The stream on which memory for decoded images is allocated.

    torchvision writes images on an internal stream that does not wait for the current stream. If images were allocated
    on the current stream, freed memory would go to the next image at once, while queued work may still read the last
    one.
    """
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


def _by_library(files: Sequence[torch.Tensor], device: torch.device) -> list[torch.Tensor]:
    try:
        from torchvision.io import ImageReadMode, decode_jpeg
    except ImportError:
        return _by_torchcodec(files, device)
    try:
        found = decode_jpeg([*files], mode=ImageReadMode.RGB, device=device)
    except (TypeError, AttributeError, RuntimeError) as error:  # torchvision 0.19 takes one file at a time
        if isinstance(error, RuntimeError) and "Expected a value of type 'Tensor'" not in str(error):
            raise
        found = [decode_jpeg(file, mode=ImageReadMode.RGB, device=device) for file in files]
    return list(found)


def _by_torch(device: torch.device) -> Decode:
    return lambda files: decode_jpegs(files, device)


DECODERS: Mapping[str, Callable[[torch.device], Decode]] = {"device": _by_torch, "dali": DaliJpegs}
"""Factories of decoders for a device, by the name that a suite uses."""


def _by_torchcodec(files: Sequence[torch.Tensor], device: torch.device) -> list[torch.Tensor]:
    from torchcodec.decoders import decode_jpeg

    return [decode_jpeg(file, device=device) for file in files]


def _is_jpeg(file: torch.Tensor) -> bool:
    return tuple(file[: len(_JPEG)].tolist()) == _JPEG


def _decode_with_pillow(file: torch.Tensor) -> torch.Tensor:
    from torchvision.transforms.functional import pil_to_tensor

    with Image.open(io.BytesIO(file.numpy().tobytes())) as image:
        pixels: torch.Tensor = pil_to_tensor(image.convert("RGB"))
    return pixels


def _small_jpeg() -> torch.Tensor:
    file = io.BytesIO()
    Image.new("RGB", (16, 16)).save(file, "JPEG")
    return torch.frombuffer(bytearray(file.getvalue()), dtype=torch.uint8)
