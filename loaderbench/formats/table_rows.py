"""Table rows of Arrow and Parquet: `image`, `suffix`, `label` and `key`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from loaderbench.formats.format import Item

IMAGE = "image"


def schema() -> Any:
    """The schema of the columns."""
    import pyarrow

    columns = {
        IMAGE: pyarrow.binary(),
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
