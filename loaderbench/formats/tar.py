"""The format `tar`: shards with WebDataset's file names, `KEY.jpg` followed by `KEY.cls` for the label."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

from loaderbench.formats.format import Format, Item, PartReader, Place, SharedReader, exactly

SHARD, LABEL = "shard.tar", ".cls"


class TarReader(SharedReader):
    """Locate all files of a shard when it is opened, and read each with a single system call."""

    def open(self, part: Path) -> list[Place]:
        """Read the headers."""
        path = part / SHARD
        with tarfile.open(path, "r:") as shard:
            files = [file for file in shard if not file.name.endswith(LABEL)]
        shard_file = os.open(path, os.O_RDONLY)
        return [Place(shard_file, file.offset_data, file.offset_data + file.size) for file in files]

    def read(self, opened: list[Place], place: int) -> bytes:
        """Read one file."""
        file, begin, end = opened[place]
        return exactly(file, end - begin, begin)


class Tar(Format):
    """Tar shards: a few large files instead of many small ones, read sequentially or by number."""

    reads: ClassVar[type[PartReader[Any]]] = TarReader

    def write_part(self, items: Iterable[Item], folder: Path) -> None:
        """Write one shard."""
        with tarfile.open(folder / SHARD, "w:", format=tarfile.USTAR_FORMAT) as shard:
            for item in items:
                for suffix, data in ((item.suffix, item.data), (LABEL, str(item.label).encode())):
                    header = tarfile.TarInfo(item.key + suffix)
                    header.size = len(data)
                    shard.addfile(header, io.BytesIO(data))
