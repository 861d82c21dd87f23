"""What is the format `lmdb`'s own: its layout, a map that grows, one environment a process, no read past the file."""

from __future__ import annotations

import errno
import multiprocessing
import os
import pickle
import random
import struct
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

lmdb = pytest.importorskip("lmdb")
from full_disk import error_of_full_disk, file_size_limited, samples_of  # noqa: E402

from loaderbench.errors import MissingError  # noqa: E402
from loaderbench.formats import Item, ReadEncoded, lmdb as module, written_copy  # noqa: E402
from loaderbench.formats.lmdb import Lmdb, of_system  # noqa: E402


@pytest.fixture
def items() -> list[Item]:
    draw = random.Random(0)
    labels = [0, 1, 999, -1, 1 << 40, *range(55)]
    return [Item(f"{n:09d}", ".jpg", label, draw.randbytes(draw.randint(1, 30_000))) for n, label in enumerate(labels)]


def differing(reader: ReadEncoded, items: list[Item]) -> list[str]:
    return [item.key for number, item in enumerate(items) if reader(number) != item.data]


def test_lmdb_reads_labels_and_images_in_order(items: list[Item], tmp_path: Path) -> None:
    Lmdb().write_part(items, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["data.mdb"]
    with lmdb.open(str(tmp_path), readonly=True, lock=False) as environment, environment.begin() as transaction:
        found = [(key.decode(), *struct.unpack("<q", value[:8]), value[8:]) for key, value in transaction.cursor()]
    assert found == [(item.key, item.label, item.data) for item in items]


def test_keys_may_begin_anywhere(items: list[Item], tmp_path: Path) -> None:
    Lmdb().write_part(items[7:], tmp_path)
    assert differing(Lmdb().reader([tmp_path], len(items)), items[7:]) == []


def test_the_map_grows_with_what_is_written(items: list[Item], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FIRST_MAP_BYTES", 1 << 16)
    monkeypatch.setattr(module, "COMMIT_BYTES", 100_000)
    Lmdb().write_part(items, tmp_path)
    assert (tmp_path / "data.mdb").stat().st_size > 10 * (1 << 16)
    assert differing(Lmdb().reader([tmp_path], len(items)), items) == []


def test_readers_and_threads_share_one_environment(items: list[Item], tmp_path: Path) -> None:
    Lmdb().write_part(items, tmp_path)
    one = Lmdb().reader([tmp_path], len(items))
    readers = [one, pickle.loads(pickle.dumps(one)), Lmdb().reader([tmp_path], len(items))]
    begun = threading.Barrier(6)

    def read(number: int) -> list[str]:
        begun.wait(timeout=30)
        found = differing(readers[number % 3], items)
        begun.wait(timeout=30)  # all have read, and keep it open
        with Path("/proc/self/maps").open() as maps:
            return found + [line for line in maps if str(tmp_path) in line][1:]

    with ThreadPoolExecutor(6) as pool:
        assert [*pool.map(read, range(6))] == [[]] * 6


def read_all(readers: list[ReadEncoded], items: list[Item]) -> list[list[str]]:
    """By two threads for each reader."""
    with ThreadPoolExecutor(4) as pool:
        return [*pool.map(lambda reader: differing(reader, items), [*readers, *readers])]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_open_it_anew_while_this_one_reads(method: str, items: list[Item], tmp_path: Path) -> None:
    Lmdb().write_part(items, tmp_path)
    readers = [Lmdb().reader([tmp_path], len(items)) for _ in range(2)]
    assert read_all(readers, items) == [[]] * 4
    assert [differing(reader, items) for reader in readers] == [[], []]
    with multiprocessing.get_context(method).Pool(2) as pool:
        found = [pool.apply_async(read_all, (readers, items)) for _ in range(2)]
        assert [differing(reader, items) for reader in readers] == [[], []]
        assert [one.get(timeout=60) for one in found] == [[[]] * 4] * 2


def test_a_copy_that_is_written_again_is_read_again(items: list[Item], tmp_path: Path) -> None:
    Lmdb().write_part(items, tmp_path)
    old = Lmdb().reader([tmp_path], len(items))
    assert old(3) == items[3].data
    (tmp_path / "data.mdb").rename(tmp_path / "other")
    Lmdb().write_part(others := [item._replace(data=item.data[::-1]) for item in items], tmp_path)
    assert differing(Lmdb().reader([tmp_path], len(items)), others) == []
    with pytest.raises(OSError, match="closed"):
        old(3)


def third(size: int) -> int:
    return size // 3


def page_less(size: int) -> int:
    return size - 4096


def two_pages(size: int) -> int:
    return 2 * 4096


def nothing(size: int) -> int:
    return 0


@pytest.mark.parametrize("left", [third, page_less, two_pages, nothing])
def test_nothing_is_read_past_the_end_of_a_truncated_file(
    left: Callable[[int], int], items: list[Item], tmp_path: Path
) -> None:
    Lmdb().write_part(items, tmp_path)
    os.truncate(tmp_path / "data.mdb", left((tmp_path / "data.mdb").stat().st_size))
    for number in (0, 59):  # in this process, which a read past the end would kill
        with pytest.raises(OSError, match=f"^{tmp_path}: sample {number} cannot be read: [^\n]+$"):
            Lmdb().reader([tmp_path], len(items))(number)


def test_a_stopped_writer_begins_again(photos: Path, tmp_path: Path) -> None:
    samples = samples_of(photos)

    def stop(done: int, total: int) -> None:
        if done == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        written_copy(samples, "lmdb", Lmdb(), cache_dir=tmp_path, on_progress=stop)
    copy = written_copy(samples, "lmdb", Lmdb(), cache_dir=tmp_path)
    assert copy.about.checksum == written_copy(samples, "lmdb", Lmdb(), cache_dir=tmp_path / "other").about.checksum
    assert [part.name for part in copy.parts] == ["part-00000"]


@pytest.mark.parametrize(("room", "said"), [(1 << 12, "no room in"), (1 << 16, "cannot write to")])
def test_a_writer_without_room_is_one_line_and_begins_again(room: int, said: str, photos: Path, tmp_path: Path) -> None:
    samples = samples_of(photos)
    with file_size_limited(room), pytest.raises(MissingError, match=f"^format lmdb: {said} [^\n]+$"):
        written_copy(samples, "lmdb", Lmdb(), cache_dir=tmp_path)
    reader = written_copy(samples, "lmdb", Lmdb(), cache_dir=tmp_path).reader(Lmdb())
    assert [reader(number) for number in range(len(samples))] == [Path(path).read_bytes() for path, _ in samples]


def test_the_words_of_a_full_disk_become_its_number(tmp_path: Path) -> None:
    for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        error = lmdb.Error(f"mdb_txn_commit: {os.strerror(number)}")
        assert of_system(error, tmp_path).errno == number


def test_a_full_disk_is_named_as_one(tmp_path: Path) -> None:
    assert error_of_full_disk(Lmdb, tmp_path) == "ENOSPC"
