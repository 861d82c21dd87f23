"""What is the format `parquet`'s own: tables that pyarrow reads, row groups, one of them in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

pyarrow = pytest.importorskip("pyarrow")
from full_disk import error_of_full_disk, file_size_limited, samples_of  # noqa: E402
from pyarrow import parquet  # noqa: E402

from loaderbench.errors import MissingError  # noqa: E402
from loaderbench.formats import Item, written_copy  # noqa: E402
from loaderbench.formats.parquet import GROUP_ROWS, TABLE, Parquet  # noqa: E402

SIZE = 10_000


@pytest.fixture
def items() -> list[Item]:
    return [
        Item(f"{number:09d}", ".png" if number % 2 else ".jpg", number - 3, bytes([number]) * SIZE)
        for number in range(2 * GROUP_ROWS + 3)
    ]


def test_pyarrow_reads_the_table_and_its_row_groups(items: list[Item], tmp_path: Path) -> None:
    Parquet().write_part(items, tmp_path)
    table = parquet.read_table(tmp_path / TABLE)
    assert {field.name: str(field.type) for field in table.schema} == {
        "image": "binary",
        "suffix": "string",
        "label": "int64",
        "key": "string",
    }
    assert [Item(row["key"], row["suffix"], row["label"], row["image"]) for row in table.to_pylist()] == items
    about = parquet.ParquetFile(tmp_path / TABLE).metadata
    assert [about.row_group(number).num_rows for number in range(about.num_row_groups)] == [100, 100, 3]


def test_a_thread_keeps_one_row_group_of_all_parts(items: list[Item], tmp_path: Path) -> None:
    parts = [tmp_path / "1", tmp_path / "2"]
    for part in parts:
        part.mkdir()
        Parquet().write_part(items, part)
    reader, before = Parquet().reader(parts, len(items)), pyarrow.total_allocated_bytes()
    numbers = [0, 5, 150, 203, 205, 405, 1]
    assert [reader(number) for number in numbers] == [items[number % len(items)].data for number in numbers]
    assert SIZE * GROUP_ROWS <= pyarrow.total_allocated_bytes() - before < 2 * SIZE * GROUP_ROWS


def test_a_row_that_is_not_there_is_one_line(items: list[Item], tmp_path: Path) -> None:
    Parquet().write_part(items[:140], tmp_path)
    reader = Parquet().reader([tmp_path], len(items))
    assert reader(139) == items[139].data
    for number in (140, 202):
        with pytest.raises(OSError, match=f"^{tmp_path}: sample {number} cannot be read: [^\n]+$"):
            reader(number)


def test_a_writer_without_room_is_one_line_and_is_continued(photos: Path, tmp_path: Path) -> None:
    samples = samples_of(photos)
    with file_size_limited(1 << 12), pytest.raises(MissingError, match=r"^format parquet: cannot write to .*too large"):
        written_copy(samples, "parquet", Parquet(), cache_dir=tmp_path)
    reader = written_copy(samples, "parquet", Parquet(), cache_dir=tmp_path).reader(Parquet())
    assert [reader(number) for number in range(len(samples))] == [Path(path).read_bytes() for path, _ in samples]


def test_a_full_disk_is_named_as_one(tmp_path: Path) -> None:
    assert error_of_full_disk(Parquet, tmp_path) == "ENOSPC"
