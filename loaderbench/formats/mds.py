"""The format `mds`: shards of MosaicML's Streaming with columns `image` and `label`, and an index of all shards."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterable, Sequence
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

from loaderbench.formats.format import Format, Item, PartReader, Place, SharedReader, exactly

INDEX = "index.json"
COLUMNS = {"image": "bytes", "label": "int"}
SHARD_BYTES = 1 << 28  # larger than any part
_NUMBER_BYTES = 4


def places_in(path: Path) -> list[Place]:
    """Open a file that begins with its number of samples, the start of each, and the end of the last."""
    file = os.open(path, os.O_RDONLY)
    (count,) = struct.unpack("<I", exactly(file, _NUMBER_BYTES, 0))
    bounds = struct.unpack(f"<{count + 1}I", exactly(file, _NUMBER_BYTES * (count + 1), _NUMBER_BYTES))
    return [Place(file, *pair) for pair in pairwise(bounds)]


def image_of_item(place: Place, head_bytes: int) -> bytes:
    """Read the image of an item, whose head begins with the size of the image."""
    file, begin, end = place
    found = exactly(file, end - begin, begin)
    (size,) = struct.unpack_from("<I", found)
    return found[head_bytes : head_bytes + size]


class MdsReader(SharedReader):
    """Read each image with a single system call, without the library."""

    def open(self, part: Path) -> list[Place]:
        """Read the positions of the samples in all shards."""
        shards = json.loads((part / INDEX).read_text(encoding="utf-8"))["shards"]
        return [place for shard in shards for place in places_in(part / shard["raw_data"]["basename"])]

    def read(self, opened: list[Place], place: int) -> bytes:
        """Return the image of a sample, which consists of the size of its image, the image, and the label."""
        return image_of_item(opened[place], _NUMBER_BYTES)


class Mds(Format):
    """MDS shards, which `streaming.StreamingDataset` reads."""

    needs: ClassVar[str] = "streaming"
    install: ClassVar[str] = "uv pip install mosaicml-streaming"
    reads: ClassVar[type[PartReader[Any]]] = MdsReader

    def write_part(self, items: Iterable[Item], folder: Path) -> None:
        """Write one shard and its index with the library's writer."""
        streaming: Any = import_module("streaming")
        writer = streaming.MDSWriter(out=str(folder), columns=COLUMNS, size_limit=SHARD_BYTES)
        try:
            for item in items:
                writer.write({"image": item.data, "label": item.label})
            writer.finish()
        finally:
            writer.executor.shutdown()

    def finish(self, folder: Path, parts: Sequence[Path]) -> None:
        """Write one index of all shards. The library's `merge_index` would mistake loaderbench's notes for indexes."""
        shards = []
        for part in parts:
            for shard in json.loads((part / INDEX).read_text(encoding="utf-8"))["shards"]:
                shard["raw_data"]["basename"] = f"{part.name}/{shard['raw_data']['basename']}"
                shards.append(shard)
        (folder / INDEX).write_text(json.dumps({"version": 2, "shards": shards}, sort_keys=True), encoding="utf-8")
