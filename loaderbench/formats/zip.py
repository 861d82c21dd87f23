"""The format `zip`: archives of uncompressed files, with a folder for each label."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from loaderbench.formats.format import Format, Item, PartReader

ARCHIVE = "images.zip"


class ZipReader(PartReader[tuple[ZipFile, list[ZipInfo]]]):
    """Read with Python's `zipfile`, which verifies each file that it reads."""

    def open(self, part: Path) -> tuple[ZipFile, list[ZipInfo]]:
        """Read the directory of an archive."""
        archive = ZipFile(part / ARCHIVE)
        return archive, archive.infolist()

    def read(self, opened: tuple[ZipFile, list[ZipInfo]], place: int) -> bytes:
        """Read one file."""
        archive, files = opened
        return archive.read(files[place])


class Zip(Format):
    """Zip archives."""

    reads: ClassVar[type[PartReader[Any]]] = ZipReader

    def write_part(self, items: Iterable[Item], folder: Path) -> None:
        """Write one archive."""
        with ZipFile(folder / ARCHIVE, "w", ZIP_STORED) as archive:
            for item in items:
                archive.writestr(ZipInfo(f"{item.label}/{item.key}{item.suffix}"), item.data)
