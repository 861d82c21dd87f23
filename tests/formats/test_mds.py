"""What is the format `mds`'s own: the library reads it, and a full disk is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("streaming")
from full_disk import error_of_full_disk, samples_of

from loaderbench.formats import written_copy
from loaderbench.formats.mds import Mds


def test_a_full_disk_is_named_as_one(tmp_path: Path) -> None:
    assert error_of_full_disk(Mds, tmp_path) == "ENOSPC"


def test_the_library_reads_every_shard_that_the_index_names(photos: Path, tmp_path: Path) -> None:
    from streaming.base.format import reader_from_json

    samples = samples_of(photos)
    copy = written_copy(samples, "mds", Mds(), cache_dir=tmp_path)
    index = json.loads((copy.folder / "index.json").read_text())
    shards = [reader_from_json(str(copy.folder), "", shard) for shard in index["shards"]]
    found = [shard[place] for shard in shards for place in range(len(shard))]
    assert [(one["image"], one["label"]) for one in found] == [(Path(p).read_bytes(), label) for p, label in samples]
