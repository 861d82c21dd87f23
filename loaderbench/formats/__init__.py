"""Storage formats of a dataset's files. Each format is one module and one line in `FORMATS`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from loaderbench.errors import MissingError
from loaderbench.formats.arrow import Arrow
from loaderbench.formats.copies import Progress, StoredCopy, copies_of, written_copy
from loaderbench.formats.format import Format, Item, PartReader, ReadEncoded
from loaderbench.formats.litdata import Litdata
from loaderbench.formats.lmdb import Lmdb
from loaderbench.formats.mds import Mds
from loaderbench.formats.parquet import Parquet
from loaderbench.formats.tar import Tar
from loaderbench.formats.tfrecord import TfRecord
from loaderbench.formats.zip import Zip

__all__ = [
    "FILES",
    "FORMATS",
    "Format",
    "Item",
    "PartReader",
    "ReadEncoded",
    "StoredCopy",
    "check_formats",
    "copies_of",
    "copy_as",
]

FILES = "files"
"""The original files, without a copy."""

FORMATS: dict[str, Format] = {
    "tar": Tar(),
    "zip": Zip(),
    "lmdb": Lmdb(),
    "arrow": Arrow(),
    "parquet": Parquet(),
    "tfrecord": TfRecord(),
    "mds": Mds(),
    "litdata": Litdata(),
}


def check_formats(names: Iterable[str]) -> None:
    """Raise `MissingError` for the first format whose library is not installed."""
    for name in names:
        found = FORMATS.get(name)
        if found is not None and not found.is_installed():
            raise MissingError(f"format {name}: {found.needs} is not installed; run `{found.install}`")


def copy_as(name: str, samples: Sequence[tuple[str, int]], on_progress: Progress) -> StoredCopy:
    """Find or write the copy of these files in a format. Raises as `written_copy` does."""
    return written_copy(samples, name, FORMATS[name], on_progress=on_progress)
