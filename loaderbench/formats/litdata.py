"""The format `litdata`: chunks of Lightning's LitData, whose items are an image and its label, and an index of all."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from loaderbench.formats.format import Format, Item, PartReader, Place, ReadEncoded, exactly
from loaderbench.formats.mds import places_in

INDEX, PART_INDEX = "index.json", "0.index.json"
CHUNK_BYTES = 1 << 28  # more than a part has
_HEAD_BYTES = 8


def import_litdata(module: str = "litdata") -> Any:
    """Import it without its check for a newer version, which takes up to 30 s without a network."""
    os.environ.setdefault("LITDATA_DISABLE_VERSION_CHECK", "1")
    return import_module(module)


class LitdataReader(PartReader[list[Place]]):
    """Reads each image with one call of the system, and needs no library for that."""

    def open(self, part: Path) -> list[Place]:
        """Read where the items of all chunks lie."""
        chunks = json.loads((part / PART_INDEX).read_text(encoding="utf-8"))["chunks"]
        return [place for chunk in chunks for place in places_in(part / chunk["filename"])]

    def read(self, opened: list[Place], place: int) -> bytes:
        """An item is the sizes of image and label, the image, and its label."""
        file, begin, end = opened[place]
        found = exactly(file, end - begin, begin)
        (size,) = struct.unpack_from("<I", found)
        return found[_HEAD_BYTES : _HEAD_BYTES + size]


class Litdata(Format):
    """Chunks of LitData, which `litdata.StreamingDataset` reads."""

    needs: ClassVar[str] = "litdata"
    install: ClassVar[str] = "uv pip install litdata"

    def write_part(self, items: Iterable[Item], folder: Path) -> None:
        """One chunk and its index, by the library's own writer, in this process."""
        writer = import_litdata("litdata.streaming.writer").BinaryWriter(str(folder), chunk_bytes=CHUNK_BYTES)
        for number, item in enumerate(items):
            writer.add_item(number, (item.data, item.label))
        writer.done()

    def finish(self, folder: Path, parts: Sequence[Path]) -> None:
        """Write one index of all chunks, as the library merges those of its workers."""
        chunks, config = [], None
        for part in parts:
            found = json.loads((part / PART_INDEX).read_text(encoding="utf-8"))
            config = config or found["config"]
            chunks += [{**chunk, "filename": f"{part.name}/{chunk['filename']}"} for chunk in found["chunks"]]
        (folder / INDEX).write_text(json.dumps({"chunks": chunks, "config": config}, sort_keys=True), encoding="utf-8")

    def reader(self, parts: Sequence[Path], part_samples: int) -> ReadEncoded:
        """Read by number."""
        return LitdataReader(parts, part_samples)
