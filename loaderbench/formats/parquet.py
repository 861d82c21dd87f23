"""The format `parquet`: Parquet files, from which a reader loads complete row groups."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

from loaderbench.formats.arrow import IMAGE, batches, schema
from loaderbench.formats.format import Format, Item, PartReader

TABLE = "images.parquet"

GROUP_ROWS = 100
"""Rows of a row group: some megabytes of photographs. A row group is always read completely."""

_LAST = "last"
"""The key of a thread's current table, alongside the numbers of parts."""


class _Table:
    """An open file, and the images of the last row group that was read."""

    def __init__(self, path: Path) -> None:
        from pyarrow.parquet import ParquetFile

        self._file = ParquetFile(path, pre_buffer=False)  # threads do not survive a fork
        self.forget()

    def forget(self) -> None:
        """Free the row group."""
        self._group, self._images = -1, None

    def image(self, group: int, row: int) -> bytes:
        """Return an image of a row group, reading the group unless it is the current one."""
        if group != self._group:
            self.forget()
            self._images = self._file.read_row_group(group, columns=[IMAGE], use_threads=False).column(IMAGE)
            self._group = group
        images: Any = self._images
        found: bytes = images[row].as_py()
        return found


class ParquetReader(PartReader[_Table]):
    """Read the row group of a sample. Each thread keeps one row group."""

    def open(self, part: Path) -> _Table:
        """Read the metadata of the row groups."""
        return _Table(part / TABLE)

    def read(self, opened: _Table, place: int) -> bytes:
        """Copy one row."""
        held = self._held.opened()
        last: _Table = held.setdefault(_LAST, opened)
        if last is not opened:
            last.forget()
            held[_LAST] = opened
        return opened.image(*divmod(place, GROUP_ROWS))


class Parquet(Format):
    """Parquet files with the columns `image`, `suffix`, `label` and `key`."""

    reads: ClassVar[type[PartReader[Any]]] = ParquetReader

    def write_part(self, items: Iterable[Item], folder: Path) -> None:
        """Write one file, without compression, since images are compressed."""
        from pyarrow.parquet import ParquetWriter

        with ParquetWriter(
            folder / TABLE, schema(), compression="none", use_dictionary=False, write_batch_size=1
        ) as table:
            for batch in batches(items, GROUP_ROWS):
                table.write_batch(batch, row_group_size=GROUP_ROWS)
