"""What is the format `arrow`'s own: tables that pyarrow reads, small batches, no copy but the image asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

pyarrow = pytest.importorskip("pyarrow")
from full_disk import error_of_full_disk, file_size_limited, samples_of  # noqa: E402
from pyarrow import feather  # noqa: E402

from loaderbench.errors import MissingError  # noqa: E402
from loaderbench.formats import Item, written_copy  # noqa: E402
from loaderbench.formats.arrow import BATCH_ROWS, TABLE, Arrow  # noqa: E402


@pytest.fixture
def items() -> list[Item]:
    return [
        Item(f"{number:09d}", ".png" if number % 2 else ".jpg", number - 3, bytes([number]) * number * 997)
        for number in range(2 * BATCH_ROWS + 3)
    ]


def test_pyarrow_reads_the_table(items: list[Item], tmp_path: Path) -> None:
    Arrow().write_part(items, tmp_path)
    table = feather.read_table(tmp_path / TABLE)
    assert {field.name: str(field.type) for field in table.schema} == {
        "image": "binary",
        "suffix": "string",
        "label": "int64",
        "key": "string",
    }
    rows = [Item(row["key"], row["suffix"], row["label"], row["image"]) for row in table.to_pylist()]
    assert rows == items


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


def test_a_row_that_is_not_there_is_one_line(items: list[Item], tmp_path: Path) -> None:
    Arrow().write_part(items[:40], tmp_path)
    reader = Arrow().reader([tmp_path], len(items))
    assert reader(39) == items[39].data
    for number in (40, 66):
        with pytest.raises(OSError, match=f"^{tmp_path}: sample {number} cannot be read: [^\n]+$"):
            reader(number)


def test_a_writer_without_room_is_one_line_and_is_continued(photos: Path, tmp_path: Path) -> None:
    samples = samples_of(photos)
    with file_size_limited(1 << 12), pytest.raises(MissingError, match=r"^format arrow: cannot write to .*too large"):
        written_copy(samples, "arrow", Arrow(), cache_dir=tmp_path)
    reader = written_copy(samples, "arrow", Arrow(), cache_dir=tmp_path).reader(Arrow())
    assert [reader(number) for number in range(len(samples))] == [Path(path).read_bytes() for path, _ in samples]


def test_a_full_disk_is_named_as_one(tmp_path: Path) -> None:
    assert error_of_full_disk(Arrow, tmp_path) == "ENOSPC"
