"""The backend `webdataset`: a `DataLoader` whose workers read tar shards sequentially, with WebDataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from loaderbench.loaders.backend import Batches
from loaderbench.loaders.shuffle_buffer import ARGUMENT, WITHOUT_EFFECT, buffer_of, of_data_loader, without_idle_buffer
from loaderbench.loaders.torch_loader import STREAM_ARGUMENTS, TorchLoader, check_workers_every
from loaderbench.loaders.written_once import written_once
from loaderbench.options import Check
from loaderbench.records import Config

_WRITE = """\
with wds.ShardWriter(f"{part}/%06d.tar", maxcount=max(1, len(files) // 16), maxsize=64 << 20) as writer:
    for number, (path, label) in enumerate(files):
        suffix = os.path.splitext(path)[1][1:].lower()
        writer.write({"__key__": f"{number:09d}", suffix: Path(path).read_bytes(), "cls": label})
"""

_READ = """tars = sorted(map(str, shards.glob("*.tar")))
samples = wds.WebDataset(tars, nodesplitter=wds.split_by_node, {drawn}){mixed}
samples = samples.decode("pil").to_tuple("jpg;jpeg;png;ppm;bmp;pgm;tif;tiff;webp", "cls")
samples = samples.map_tuple(dataset.transform, None)
"""


class WebDataset(TorchLoader):
    """WebDataset reads complete tar shards; decoder and transform come from the dataset."""

    display_name: ClassVar[str] = "WebDataset"
    needs: ClassVar[str] = "webdataset"
    install: ClassVar[str] = "uv pip install webdataset"
    format: ClassVar[str] = "tar"
    reads_stores: ClassVar[bool] = True
    arguments: ClassVar[Mapping[str, Check]] = {
        **STREAM_ARGUMENTS,
        **ARGUMENT,
    }
    without_effect: ClassVar[Mapping[str, str]] = {
        **TorchLoader.without_effect,
        **WITHOUT_EFFECT,
    }

    def build(self, source: Any, arguments: Mapping[str, Any], *, seed: int) -> Batches:
        """Read the tar copy of an image folder.

        Raises `TypeError` for any other source, and `ValueError` for more workers than shards.
        """
        from loaderbench.loaders.chunk_samples import chunk_batches, copy_of
        from loaderbench.loaders.tar_samples import TarSamples

        check_workers_every(1.0)
        copy, buffer = copy_of(source, "webdataset", self.format), buffer_of(arguments)
        samples = TarSamples(copy, source, buffer=buffer, batch_size=arguments.get("batch_size") or 1, seed=seed)
        samples.check_workers(arguments.get("num_workers", 0))
        return chunk_batches(samples, arguments, seed=seed)

    def normalized(self, config: Config, fixed: Mapping[str, Any]) -> Config:
        """Normalize as for torch, and remove the buffer size without `shuffle`."""
        return without_idle_buffer(super().normalized(config, fixed), fixed)

    def code(self, arguments: Mapping[str, Any], comments: Sequence[str]) -> list[str]:
        """Code that writes shards of the dataset's files, and a `DataLoader` over them."""
        buffer = buffer_of(arguments)
        drawn = "shardshuffle=False" if buffer is None else "shardshuffle=len(tars), detshuffle=True"
        mixed = "" if buffer is None else f"\nsamples = samples.shuffle({buffer})"
        setup, loader = self.code_over("samples", of_data_loader(arguments), comments)
        return [
            "import webdataset as wds",
            written_once(self.format, _WRITE, arguments.get("shuffle")),
            _READ.format(drawn=drawn, mixed=mixed),
            setup,
            loader,
        ]
