"""The backend `litdata`: a `DataLoader` whose workers read chunks, with Lightning's LitData."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from loaderbench.loaders.backend import Batches
from loaderbench.loaders.shuffle_buffer import of_data_loader
from loaderbench.loaders.torch_loader import STREAM_ARGUMENTS, TorchLoader, check_workers_every
from loaderbench.loaders.written_once import written_once
from loaderbench.options import Check

_IMPORTS = """\
from io import BytesIO

from litdata import StreamingDataLoader, StreamingDataset
from litdata.streaming.writer import BinaryWriter
from PIL import Image
"""

_WRITE = """\
writer = BinaryWriter(str(part), chunk_bytes="64MB")  # litdata.optimize does it in several processes
for number, (path, label) in enumerate(files):
    writer.add_item(number, (Path(path).read_bytes(), label))
writer.done()
writer.merge()
"""

_READ = """\
def decoded(item):
    image, label = item
    return dataset.transform(Image.open(BytesIO(image)).convert("RGB")), label


samples = StreamingDataset(str(shards), shuffle={shuffle}, transform=decoded)
"""


class LitdataLoader(TorchLoader):
    """Lightning's LitData reads chunks; decoder and transform come from the dataset."""

    display_name: ClassVar[str] = "LitData"
    needs: ClassVar[str] = "litdata"
    install: ClassVar[str] = "uv pip install litdata"
    format: ClassVar[str] = "litdata"
    arguments: ClassVar[Mapping[str, Check]] = STREAM_ARGUMENTS

    def build(self, source: Any, arguments: Mapping[str, Any], *, seed: int) -> Batches:
        """Read the `litdata` copy of an image folder. Raises `TypeError` for any other source."""
        from loaderbench.formats.litdata import import_litdata
        from loaderbench.loaders.chunk_samples import chunk_batches, copy_of

        copy = copy_of(source, "litdata", self.format)
        import_litdata()
        from loaderbench.loaders.litdata_samples import LitdataSamples

        check_workers_every(1.0)
        shuffle, size = bool(arguments.get("shuffle")), arguments.get("batch_size") or 1
        workers = arguments.get("num_workers", 0)
        samples = LitdataSamples(copy, source, shuffle=shuffle, batch_size=size, workers=workers, seed=seed)
        return chunk_batches(samples, arguments, seed=seed)

    def code(self, arguments: Mapping[str, Any], comments: Sequence[str]) -> list[str]:
        """Code that writes chunks of the dataset's files, and LitData's loader over them."""
        setup, loader = self.code_over("samples", of_data_loader(arguments), comments)
        if arguments.get("batch_size", 1) is not None:  # LitData's loader cannot do without batches
            loader = loader.replace("from torch.utils.data import DataLoader\n\n", "")
            loader = loader.replace("loader = DataLoader(", "loader = StreamingDataLoader(")
        read = _READ.format(shuffle=bool(arguments.get("shuffle")))
        return [_IMPORTS, written_once(self.format, _WRITE, arguments.get("shuffle")), read, setup, loader]
