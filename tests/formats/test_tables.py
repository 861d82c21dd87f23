"""What the formats `arrow` and `parquet` share: the columns, one line for each error, a full disk."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyarrow")
from full_disk import error_of_full_disk, file_size_limited, samples_of
from pyarrow import feather, parquet

from loaderbench.errors import MissingError
from loaderbench.formats import FORMATS, Item, written_copy

READ = {"arrow": feather.read_table, "parquet": parquet.read_table}
COLUMNS = {"image": "large_binary", "suffix": "string", "label": "int64", "key": "string"}
every_table = pytest.mark.parametrize("name", READ)


@pytest.fixture
def items() -> list[Item]:
    """More than two batches of either."""
    return [
        Item(f"{number:09d}", ".png" if number % 2 else ".jpg", number - 3, bytes([number]) * number * 97)
        for number in range(203)
    ]


@every_table
def test_pyarrow_reads_the_table(name: str, items: list[Item], tmp_path: Path) -> None:
    FORMATS[name].write_part(items, tmp_path)
    table = READ[name](tmp_path / f"images.{name}")
    assert {field.name: str(field.type) for field in table.schema} == COLUMNS
    assert [Item(row["key"], row["suffix"], row["label"], row["image"]) for row in table.to_pylist()] == items


@every_table
def test_a_row_that_is_not_there_is_one_line(name: str, items: list[Item], tmp_path: Path) -> None:
    FORMATS[name].write_part(items[:140], tmp_path)
    reader = FORMATS[name].reader([tmp_path], len(items))
    assert reader(139) == items[139].data
    for number in (140, 202):
        with pytest.raises(OSError, match=f"^{tmp_path}: sample {number} cannot be read: [^\n]+$"):
            reader(number)


@every_table
def test_a_writer_without_room_is_one_line_and_is_continued(name: str, photos: Path, tmp_path: Path) -> None:
    samples, how = samples_of(photos), FORMATS[name]
    with (
        file_size_limited(1 << 12),
        pytest.raises(MissingError, match=f"^format {name}: cannot write to .*too large; set LOADER"),
    ):
        written_copy(samples, name, how, cache_dir=tmp_path)
    reader = written_copy(samples, name, how, cache_dir=tmp_path).reader(how)
    assert [reader(number) for number in range(len(samples))] == [Path(path).read_bytes() for path, _ in samples]


@every_table
def test_a_full_disk_is_named_as_one(name: str, tmp_path: Path) -> None:
    assert error_of_full_disk(type(FORMATS[name]), tmp_path) == "ENOSPC"
