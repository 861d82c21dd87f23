"""The decoder `dali`: NVIDIA DALI decodes a batch of files, with nvJPEG on a GPU and with libjpeg-turbo on the CPU.

It does what `decoder: device` does. On a GPU the pixels may differ: DALI interpolates the colors as libjpeg-turbo
does, and torchvision repeats them. Crops stay torchvision's: a seed draws the same ones for every decoder. DALI's
decoders that crop would draw their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from loaderbench.cache_folder import usable_cores

if TYPE_CHECKING:
    import torch

INSTALL = "uv pip install nvidia-dali-cuda130"


def is_installed() -> bool:
    """Whether DALI is there, without importing it.

    Its parent `nvidia` belongs to many packages, or to none. An uninstalled DALI leaves a folder without a module.
    """
    found = find_spec("nvidia") and find_spec("nvidia.dali")
    return found is not None and found.origin is not None


class DaliJpegs:
    """Decodes the JPEGs of a batch as RGB on one device, by a pipeline of one operator.

    The pipeline is built for the largest batch so far, and built again after an error, which leaves it invalid.
    """

    def __init__(self, device: torch.device) -> None:
        import torch

        if device.type not in ("cuda", "cpu") or (device.type == "cuda" and torch.version.hip):
            kind = "ROCm" if torch.version.hip else device.type
            raise RuntimeError(f"decoder: dali needs an NVIDIA GPU, and this device is {kind}")
        self._device, self._largest = device, 0
        self._pipeline: Any = None

    def __call__(self, files: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Images of shape (3, height, width). Raises the `RuntimeError` of DALI.

        The order of streams is that of DALI's own iterator for PyTorch. `run` returns once all is decoded.
        `feed_ndarray` queues a copy on torch's current stream into memory of torch, and makes DALI's stream wait for
        it: no later batch overwrites what is still to be copied. DLPack does not promise that.
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
    """As Pillow decodes: not turned by EXIF, and with interpolated colors. Its queue is one batch deep: ours."""
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
