"""What is the format `parquet`'s own: row groups, one of them in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

pyarrow = pytest.importorskip("pyarrow")
from pyarrow import parquet  # noqa: E402

from loaderbench.formats import Item  # noqa: E402
from loaderbench.formats.parquet import GROUP_ROWS, TABLE, Parquet  # noqa: E402

SIZE = 10_000


@pytest.fixture
def items() -> list[Item]:
    return [
        Item(f"{number:09d}", ".png" if number % 2 else ".jpg", number - 3, bytes([number]) * SIZE)
        for number in range(2 * GROUP_ROWS + 3)
    ]


def test_row_groups_have_100_rows(items: list[Item], tmp_path: Path) -> None:
    Parquet().write_part(items, tmp_path)
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
