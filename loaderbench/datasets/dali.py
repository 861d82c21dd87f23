"""The decoder `dali`: NVIDIA DALI decodes a batch of files, with nvJPEG on a GPU and with libjpeg-turbo on the CPU.

It replaces torchvision in `decoder: device`. On a GPU the pixels may differ: DALI interpolates chroma as libjpeg-turbo
does, while torchvision repeats it. Torchvision still draws the crops, so a seed gives the same crops with every
decoder. DALI's own cropping decoders would draw different ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from loaderbench import libraries
from loaderbench.cpu_lists import usable_cores

if TYPE_CHECKING:
    import torch

INSTALL = "uv pip install nvidia-dali-cuda130"


def is_installed() -> bool:
    """Whether DALI is installed, without importing it."""
    return libraries.is_installed("nvidia.dali")


class DaliJpegs:
    """Decode the JPEGs of a batch to RGB on one device, with a pipeline of a single operator.

    The pipeline is built for the largest batch so far. It is rebuilt after an error, which leaves a pipeline invalid.
    """

    def __init__(self, device: torch.device) -> None:
        import torch

        if device.type not in ("cuda", "cpu") or (device.type == "cuda" and torch.version.hip):
            kind = "ROCm" if torch.version.hip else device.type
            raise RuntimeError(f"decoder: dali needs an NVIDIA GPU, and this device is {kind}")
        self._device, self._largest = device, 0
        self._pipeline: Any = None

    def __call__(self, files: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Return images of shape (3, height, width). Raises DALI's `RuntimeError`.

        The streams are ordered as in DALI's own iterator for PyTorch. `run` returns when all images are decoded.
        `feed_ndarray` enqueues a copy into torch's memory on torch's current stream, and DALI's stream waits for the
        copy. Later batches therefore cannot overwrite images that are still to be copied. DLPack does not guarantee
        that.
        """
        import torch
        from nvidia.dali.plugin.pytorch import feed_ndarray

        if self._pipeline is None or len(files) > self._largest:
            self._largest = max(self._largest, len(files))
            self._pipeline = _pipeline(self._largest, self._device)
        stream = torch.cuda.current_stream(self._device) if self._device.type == "cuda" else None
        try:
            (images,) = self._pipeline.run(files=[file.numpy() for file in files])
        except RuntimeError:
            self._pipeline = None
            raise
        copies = [torch.empty(image.shape(), dtype=torch.uint8, device=self._device) for image in images]
        for image, copy in zip(images, copies, strict=True):
            feed_ndarray(image, copy, cuda_stream=stream)
        return [copy.permute(2, 0, 1).contiguous() for copy in copies]


def _pipeline(batch_size: int, device: torch.device) -> Any:
    """Build a pipeline decoding as Pillow does (no EXIF rotation, interpolated chroma) with a queue of one batch."""
    from nvidia.dali import Pipeline, fn, types

    on_gpu = device.type == "cuda"
    made = Pipeline(
        batch_size=batch_size,
        num_threads=usable_cores(),
        device_id=device.index if on_gpu else None,
        prefetch_queue_depth=1,
    )
    with made:
        files = fn.external_source(name="files", dtype=types.UINT8, ndim=1)
        where = "mixed" if on_gpu else "cpu"
        made.set_outputs(fn.decoders.image(files, device=where, adjust_orientation=False, jpeg_fancy_upsampling=True))
    return made
