"""What is the format `litdata`'s own: the library reads it, and a full disk is named."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("litdata")
from full_disk import error_of_full_disk, samples_of
from loader_batches import sharing_leftovers

from loaderbench.formats import written_copy
from loaderbench.formats.litdata import Litdata, import_litdata

pytestmark = sharing_leftovers


def test_a_full_disk_is_named_as_one(tmp_path: Path) -> None:
    assert error_of_full_disk(Litdata, tmp_path) == "ENOSPC"


def test_the_library_reads_all_parts_by_the_one_index(photos: Path, tmp_path: Path) -> None:
    samples = samples_of(photos)
    copy = written_copy(samples, "litdata", Litdata(), cache_dir=tmp_path)
    before = sorted(tmp_path.rglob("*"))
    found = [tuple(item) for item in import_litdata().StreamingDataset(str(copy.folder))]
    assert found == [(Path(path).read_bytes(), label) for path, label in samples]
    assert sorted(tmp_path.rglob("*")) == before
