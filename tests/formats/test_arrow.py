"""What is the format `arrow`'s own: small batches, no copy but the image asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

pyarrow = pytest.importorskip("pyarrow")

from loaderbench.formats import Item  # noqa: E402
from loaderbench.formats.arrow import BATCH_ROWS, TABLE, Arrow  # noqa: E402


@pytest.fixture
def items() -> list[Item]:
    return [
        Item(f"{number:09d}", ".png" if number % 2 else ".jpg", number - 3, bytes([number]) * number * 997)
        for number in range(2 * BATCH_ROWS + 3)
    ]


def test_batches_are_small(items: list[Item], tmp_path: Path) -> None:
    Arrow().write_part(items, tmp_path)
    with pyarrow.ipc.open_file(tmp_path / TABLE) as table:
        assert [table.get_batch(number).num_rows for number in range(table.num_record_batches)] == [32, 32, 3]


def test_only_the_image_that_is_asked_for_is_copied(items: list[Item], tmp_path: Path) -> None:
    Arrow().write_part(items, tmp_path)
    reader, before = Arrow().reader([tmp_path], len(items)), pyarrow.total_allocated_bytes()
    kept = [reader(number) for number in (66, 0, 33)]
    assert kept == [items[number].data for number in (66, 0, 33)]
    assert pyarrow.total_allocated_bytes() - before < len(items[66].data)
