"""The format `arrow`: memory-mapped Arrow IPC files, also called Feather files. Parquet has the same columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from loaderbench.formats.format import Format, Item, PartReader

IMAGE = "image"


def schema() -> Any:
    """The schema of the columns."""
    import pyarrow

    columns = {
        IMAGE: pyarrow.large_binary(),  # a batch of uncompressed images can exceed 2 GiB
        "suffix": pyarrow.string(),
        "label": pyarrow.int64(),
        "key": pyarrow.string(),
    }
    return pyarrow.schema(list(columns.items()))


def batches(items: Iterable[Item], rows: int) -> Iterator[Any]:
    """Yield record batches of this many rows."""
    import pyarrow

    left, columns = iter(items), schema()
    while batch := [*islice(left, rows)]:
        values = zip(*((row.data, row.suffix, row.label, row.key) for row in batch), strict=True)
        arrays = [pyarrow.array(column, kind) for column, kind in zip(values, columns.types, strict=True)]
        yield pyarrow.record_batch(arrays, schema=columns)


TABLE = "images.arrow"

BATCH_ROWS = 32
"""Rows of a record batch: a few megabytes of photographs, for readers that load complete batches."""


class ArrowReader(PartReader[list[Any]]):
    """Map a file into memory. Only the pages of the requested row are read."""

    def open(self, part: Path) -> list[Any]:
        """Return the image column of each batch without reading it. Raises `ValueError` for a file without rows."""
        from pyarrow import ipc, memory_map

        options = ipc.IpcReadOptions(use_threads=False)  # threads do not survive a fork
        table = ipc.open_file(memory_map(str(part / TABLE)), options=options)
        return [table.get_batch(number).column(IMAGE) for number in range(table.num_record_batches)]

    def read(self, opened: list[Any], place: int) -> bytes:
        """Copy one row."""
        batch, row = divmod(place, BATCH_ROWS)
        found: bytes = opened[batch][row].as_py()
        return found


class Arrow(Format):
    """Arrow IPC files with the columns `image`, `suffix`, `label` and `key`."""

    reads: ClassVar[type[PartReader[Any]]] = ArrowReader

    def write_part(self, items: Iterable[Item], folder: Path) -> None:
        """Write one file."""
        import pyarrow

        with (
            pyarrow.OSFile(str(folder / TABLE), "wb") as file,
            pyarrow.ipc.new_file(file, schema()) as table,
        ):
            for batch in batches(items, BATCH_ROWS):
                table.write_batch(batch)
