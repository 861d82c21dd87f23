"""JPEGs of which nvImageCodec decodes one region, on the CPU, to the same pixels as Pillow.

libjpeg-turbo does not read the rows below the region. Rows above it and columns outside it need only Huffman decoding.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from nvidia import nvimgcodec
from PIL import Image

from loaderbench.per_thread import PerThread

_OPENED = PerThread()


class JpegRegions:
    """A JPEG whose header was read. Indexing it like a tensor of `shape` (3, height, width) decodes a region.

    `image[:, 20:120, 10:200]` decodes 100 rows and 190 columns. A deep copy decodes the complete image.
    """

    def __init__(self, data: bytes, stream: Any) -> None:
        self._data, self._stream = data, stream
        self.shape = torch.Size((3, stream.height, stream.width))

    def __getitem__(self, place: tuple[slice, slice, slice]) -> torch.Tensor:
        """Decode a region to uint8, shape (3, rows, columns).

        Pillow decodes files that nvImageCodec cannot, and raises `OSError` for broken files.
        """
        top, bottom, _ = place[1].indices(self.shape[1])
        left, right, _ = place[2].indices(self.shape[2])
        region = nvimgcodec.Region(top, left, bottom, right)
        opened = _thread_decoder()
        pixels = opened["decoder"].decode(self._stream.get_sub_code_stream(region=region), params=opened["params"])
        if pixels is None:
            return _decode_with_pillow(self._data)[place]
        return torch.from_numpy(np.asarray(pixels)).permute(2, 0, 1)

    def __deepcopy__(self, memo: Any) -> torch.Tensor:
        return self[:, :, :]


def open_jpeg(encoded: str | bytes) -> JpegRegions | torch.Tensor:
    """Open a file, given by its path or bytes. Pillow decodes files other than color or gray JPEGs to a tensor."""
    data = Path(encoded).read_bytes() if isinstance(encoded, str) else encoded
    if not data.startswith(b"\xff\xd8"):
        return _decode_with_pillow(data)
    try:
        stream = nvimgcodec.CodeStream(data)
    except RuntimeError:  # a broken header
        return _decode_with_pillow(data)
    return JpegRegions(data, stream) if stream.num_channels in (1, 3) else _decode_with_pillow(data)


def _thread_decoder() -> dict[Any, Any]:
    """The decoder of this thread and its parameters. nvImageCodec crashes if threads share a decoder."""
    opened = _OPENED.opened()
    if "decoder" not in opened:
        opened["decoder"] = nvimgcodec.Decoder(
            device_id=nvimgcodec.NVIMGCODEC_DEVICE_CPU_ONLY,
            max_num_cpu_threads=1,
            backends=[nvimgcodec.Backend(nvimgcodec.CPU_ONLY)],
            options=":fancy_upsampling=1",
        )
        opened["params"] = nvimgcodec.DecodeParams(apply_exif_orientation=False)
    return opened


def _decode_with_pillow(data: bytes) -> torch.Tensor:
    with Image.open(BytesIO(data)) as image:
        return torch.from_numpy(np.array(image.convert("RGB"))).permute(2, 0, 1)
