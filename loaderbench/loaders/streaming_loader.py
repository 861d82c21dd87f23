"""The backend `streaming`: a `DataLoader` whose workers read MDS shards, with MosaicML's Streaming."""

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

from PIL import Image
from streaming import MDSWriter, StreamingDataset
"""

_WRITE = """\
with MDSWriter(out=str(part), columns={"image": "bytes", "label": "int"}) as writer:
    for path, label in files:
        writer.write({"image": Path(path).read_bytes(), "label": label})
"""

_READ = """\
class Images(StreamingDataset):
    def __getitem__(self, number):
        found = super().__getitem__(number)
        return dataset.transform(Image.open(BytesIO(found["image"])).convert("RGB")), found["label"]


samples = Images(local=str(shards), shuffle={shuffle}, batch_size={batch_size})
"""


class Streaming(TorchLoader):
    """MosaicML's Streaming reads MDS shards; decoder and transform come from the dataset."""

    display_name: ClassVar[str] = "MosaicML Streaming"
    needs: ClassVar[str] = "streaming"
    install: ClassVar[str] = "uv pip install mosaicml-streaming"
    format: ClassVar[str] = "mds"
    arguments: ClassVar[Mapping[str, Check]] = STREAM_ARGUMENTS

    def build(self, source: Any, arguments: Mapping[str, Any], *, seed: int) -> Batches:
        """Read the MDS copy of an image folder. Raises `TypeError` for any other source."""
        from loaderbench.loaders.chunk_samples import chunk_batches, copy_of

        copy = copy_of(source, "streaming", self.format)
        from loaderbench.loaders.streaming_samples import MdsSamples

        check_workers_every(1.0)
        shuffle, size = bool(arguments.get("shuffle")), arguments.get("batch_size") or 1
        samples = MdsSamples(copy, source, shuffle=shuffle, batch_size=size, seed=seed)
        return chunk_batches(samples, arguments, seed=seed)

    def code(self, arguments: Mapping[str, Any], comments: Sequence[str]) -> list[str]:
        """Code that writes shards of the dataset's files, and a `DataLoader` over them."""
        setup, loader = self.code_over("samples", of_data_loader(arguments), comments)
        shown = {"shuffle": bool(arguments.get("shuffle")), "batch_size": arguments.get("batch_size") or 1}
        return [
            _IMPORTS,
            written_once(self.format, _WRITE, arguments.get("shuffle")),
            _READ.format(**shown),
            setup,
            loader,
        ]
