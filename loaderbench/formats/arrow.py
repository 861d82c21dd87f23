"""The format `arrow`: Arrow IPC files, also called Feather files, mapped into memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from loaderbench.formats.format import Format, Item, PartReader, ReadEncoded

TABLE = "images.arrow"

BATCH_ROWS = 32
"""Of a record batch: a few megabytes of photographs, for readers that load whole batches."""


class ArrowReader(PartReader[list[Any]]):
    """Maps a file into memory. Of a batch, only the pages of the row that is asked for are read."""

    def open(self, part: Path) -> list[Any]:
        """The column of images of each batch; none of them is read yet. Raises `ValueError` for a file without rows."""
        from pyarrow import ipc, memory_map

        options = ipc.IpcReadOptions(use_threads=False)  # threads do not survive a fork
        table = ipc.open_file(memory_map(str(part / TABLE)), options=options)
        return [table.get_batch(number).column("image") for number in range(table.num_record_batches)]

    def read(self, opened: list[Any], place: int) -> bytes:
        """Copy one row."""
        batch, row = divmod(place, BATCH_ROWS)
        found: bytes = opened[batch][row].as_py()
        return found


class Arrow(Format):
    """Arrow IPC files with the columns `image`, `suffix`, `label` and `key`."""

    def write_part(self, items: Iterable[Item], folder: Path) -> None:
        """One file."""
        import pyarrow

        columns = {
            "image": pyarrow.binary(),
            "suffix": pyarrow.string(),
            "label": pyarrow.int64(),
            "key": pyarrow.string(),
        }
        schema = pyarrow.schema(list(columns.items()))
        with (
            pyarrow.OSFile(str(folder / TABLE), "wb") as file,
            pyarrow.ipc.new_file(file, schema) as table,
        ):
            for rows in _batches(items):
                values = zip(*((row.data, row.suffix, row.label, row.key) for row in rows), strict=True)
                arrays = [pyarrow.array(column, kind) for column, kind in zip(values, columns.values(), strict=True)]
                table.write_batch(pyarrow.record_batch(arrays, schema=schema))

    def reader(self, parts: Sequence[Path], part_samples: int) -> ReadEncoded:
        """Read by number."""
        return ArrowReader(parts, part_samples)


def _batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    left = iter(items)
    while batch := [*islice(left, BATCH_ROWS)]:
        yield batch
