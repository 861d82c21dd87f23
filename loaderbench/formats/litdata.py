"""The format `litdata`: chunks of Lightning's LitData, each item an image and its label, and an index of all chunks."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from loaderbench.formats.format import Format, Item, PartReader, Place, SharedReader
from loaderbench.formats.mds import image_of_item, places_in

INDEX, PART_INDEX = "index.json", "0.index.json"
CHUNK_BYTES = 1 << 28  # larger than any part
_HEAD_BYTES = 8


def import_litdata(module: str = "litdata") -> Any:
    """Import LitData without its check for a newer version, which takes up to 30 s without a network."""
    os.environ.setdefault("LITDATA_DISABLE_VERSION_CHECK", "1")
    return import_module(module)


class LitdataReader(SharedReader):
    """Read each image with a single system call, without the library."""

    def open(self, part: Path) -> list[Place]:
        """Read the positions of the items in all chunks."""
        chunks = json.loads((part / PART_INDEX).read_text(encoding="utf-8"))["chunks"]
        return [place for chunk in chunks for place in places_in(part / chunk["filename"])]

    def read(self, opened: list[Place], place: int) -> bytes:
        """Return the image of an item, which consists of the sizes of image and label, the image, and the label."""
        return image_of_item(opened[place], _HEAD_BYTES)


class Litdata(Format):
    """LitData chunks, which `litdata.StreamingDataset` reads."""

    needs: ClassVar[str] = "litdata"
    install: ClassVar[str] = "uv pip install litdata"
    reads: ClassVar[type[PartReader[Any]]] = LitdataReader

    def write_part(self, items: Iterable[Item], folder: Path) -> None:
        """Write one chunk and its index with the library's writer, in this process."""
        writer = import_litdata("litdata.streaming.writer").BinaryWriter(str(folder), chunk_bytes=CHUNK_BYTES)
        for number, item in enumerate(items):
            writer.add_item(number, (item.data, item.label))
        writer.done()

    def finish(self, folder: Path, parts: Sequence[Path]) -> None:
        """Write one index of all chunks, merged as the library merges its workers' indexes."""
        chunks, config = [], None
        for part in parts:
            found = json.loads((part / PART_INDEX).read_text(encoding="utf-8"))
            config = config or found["config"]
            chunks += [{**chunk, "filename": f"{part.name}/{chunk['filename']}"} for chunk in found["chunks"]]
        (folder / INDEX).write_text(json.dumps({"chunks": chunks, "config": config}, sort_keys=True), encoding="utf-8")
