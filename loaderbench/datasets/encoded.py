"""Files that workers read and the device decodes: samples of encoded bytes, batches of them, and the rest on a device.

`decoder: device` keeps decoding, cropping and stacking out of the workers. What is left of a batch is done where the
training step computes, as a part of the step. `decoder: dali` does the same with another decoder.
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
from loaderbench.formats import ReadEncoded
from loaderbench.imagenet import MEAN, STD

Decode = Callable[[Sequence[torch.Tensor]], list[torch.Tensor]]
"""Decodes JPEGs as RGB. Raises `RuntimeError` where it cannot decode one of them."""
_JPEG = (0xFF, 0xD8, 0xFF)
"""How every JPEG begins. Other files are decoded on the CPU."""


class EncodedImage(NamedTuple):
    """The bytes of a file."""

    data: torch.Tensor


class EncodedImages(NamedTuple):
    """The files of a batch in one tensor, one after another; `sizes` are their bytes."""

    sizes: torch.Tensor
    data: torch.Tensor

    def files(self) -> list[torch.Tensor]:
        """The bytes of each file, without a copy."""
        return list(torch.tensor_split(self.data, self.sizes.cumsum(0)[:-1]))


class EncodedSamples(Dataset[tuple[EncodedImage, int]]):
    """Reads a file on access, and leaves the rest to the device. torch's own collate function packs a batch.

    `reader` reads a copy in another format; `None` for the files themselves.
    """

    def __init__(self, samples: Sequence[tuple[str, int]], reader: ReadEncoded | None = None) -> None:
        self.samples, self.reader = samples, reader

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[EncodedImage, int]:
        path, label = self.samples[index]
        data = Path(path).read_bytes() if self.reader is None else self.reader(index)
        return EncodedImage(torch.frombuffer(bytearray(data), dtype=torch.uint8)), label


def _packed(images: Sequence[EncodedImage], *, collate_fn_map: Any = None) -> EncodedImages:  # noqa: ARG001 - torch's
    files = [image.data for image in images]
    return EncodedImages(torch.tensor([len(file) for file in files]), torch.cat(files))


default_collate_fn_map[EncodedImage] = _packed


class DecodedOnDevice:
    """Takes a batch of files to a device: decodes them there, transforms each, and stacks them.

    `decoder` is one of `DECODERS`, and `transform` one that takes uint8 tensors and gives uint8. Raises the decoder's
    error where it cannot decode on this device at all. Files that it alone cannot decode (no JPEG, CMYK) are decoded on
    the CPU, and counted.
    """

    def __init__(self, device: str, transform: Transform, *, normalize: bool, decoder: str = "device") -> None:
        named = torch.device(device)
        self._device = torch.device("cuda", named.index or 0) if named.type == "cuda" else named
        self._transform, self._normalize = transform, normalize
        self._mean, self._std = (torch.tensor(each, device=named).view(3, 1, 1) * 255 for each in (MEAN, STD))
        self._on_cpu = self._seen = 0
        self._decode = DECODERS[decoder](self._device)
        self._decode([_small_jpeg()])

    @property
    def note(self) -> str:
        """How many images the device could not decode; empty where it could decode all."""
        if not self._on_cpu:
            return ""
        return f"{self._on_cpu:,} of {self._seen:,} images were decoded on the CPU: no JPEG, or CMYK"

    def __call__(self, batch: Any) -> Any:
        """Images and labels; the labels stay where they are."""
        encoded, labels = batch
        images = torch.stack([self._transform(image) for image in self.decoded(encoded.files())])
        return [(images.float() - self._mean) / self._std if self._normalize else images, labels]

    def decoded(self, files: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The images of files, uint8 of shape (3, height, width), on the device."""
        self._seen += len(files)
        if all(map(_is_jpeg, files)):
            try:
                return self._decode(files)
            except RuntimeError:  # one that the device does not take spoils them all
                pass
        return [self._decoded(file) for file in files]

    def _decoded(self, file: torch.Tensor) -> torch.Tensor:
        if _is_jpeg(file):
            try:
                return self._decode([file])[0]
            except RuntimeError:  # of an error of the device, copying raises it again
                pass
        self._on_cpu += 1
        return _decoded_by_pillow(file).to(self._device)


def decode_jpegs(files: Sequence[torch.Tensor], device: torch.device) -> list[torch.Tensor]:
    """Decode JPEGs as RGB on a device. Raises the `RuntimeError` of the decoder, and `ImportError` where there is none.

    By torchvision, in one call where it takes a list; by TorchCodec where torchvision decodes no more. Work that is
    queued on the current stream may use the images: none is overwritten before that work is done.
    """
    if device.type not in ("cuda", "cpu"):  # torchvision would decode on the CPU without a word
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
    """Where the memory of decoded images is allocated.

    torchvision writes images on a stream of its own, which does not wait for the current one. On the current stream,
    memory freed there is given to the next image at once, while queued work may still read the last.
    """
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


def _by_library(files: Sequence[torch.Tensor], device: torch.device) -> list[torch.Tensor]:
    try:
        from torchvision.io import ImageReadMode, decode_jpeg
    except ImportError:
        return _by_torchcodec(files, device)
    try:
        found = decode_jpeg([*files], mode=ImageReadMode.RGB, device=device)
    except (TypeError, AttributeError):
        found = [decode_jpeg(file, mode=ImageReadMode.RGB, device=device) for file in files]
    return list(found)


def _by_torch(device: torch.device) -> Decode:
    return lambda files: decode_jpegs(files, device)


DECODERS: Mapping[str, Callable[[torch.device], Decode]] = {"device": _by_torch, "dali": DaliJpegs}
"""What makes a decoder for a device, by the name that a suite uses."""


def _by_torchcodec(files: Sequence[torch.Tensor], device: torch.device) -> list[torch.Tensor]:
    from torchcodec.decoders import decode_jpeg

    return [decode_jpeg(file, device=device) for file in files]


def _is_jpeg(file: torch.Tensor) -> bool:
    return tuple(file[: len(_JPEG)].tolist()) == _JPEG


def _decoded_by_pillow(file: torch.Tensor) -> torch.Tensor:
    from torchvision.transforms.functional import pil_to_tensor

    with Image.open(io.BytesIO(file.numpy().tobytes())) as image:
        pixels: torch.Tensor = pil_to_tensor(image.convert("RGB"))
    return pixels


def _small_jpeg() -> torch.Tensor:
    file = io.BytesIO()
    Image.new("RGB", (16, 16)).save(file, "JPEG")
    return torch.frombuffer(bytearray(file.getvalue()), dtype=torch.uint8)
