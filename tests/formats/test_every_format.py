"""What holds for every format whose library is installed: all files come back, read in any way."""

from __future__ import annotations

import errno
import multiprocessing
import pickle
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from loaderbench.formats import FORMATS, Format, ReadEncoded, StoredCopy, written_copy

NAMES = [name for name, how in FORMATS.items() if how.is_installed()]
Samples = list[tuple[str, int]]


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    """70 files of 1 to 40,000 bytes with 3 labels; two have the same name."""
    folder, draw, found = tmp_path_factory.mktemp("files"), random.Random(0), []
    for number in range(70):
        file = folder / str(number % 3) / f"{number // 6}{'.PNG' if number % 2 else '.jpg'}"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(draw.randbytes(draw.randint(1, 40_000)))
        found.append((str(file), number % 3))
    return sorted(found)


@pytest.fixture(scope="module", params=NAMES)
def stored(
    request: pytest.FixtureRequest, samples: Samples, tmp_path_factory: pytest.TempPathFactory
) -> tuple[StoredCopy, Format]:
    how = FORMATS[request.param]
    return written_copy(samples, request.param, how, cache_dir=tmp_path_factory.mktemp("cache")), how


def differing(reader: ReadEncoded, samples: Samples, numbers: list[int]) -> list[int]:
    """The samples whose bytes are not those of their files."""
    return [number for number in numbers if reader(number) != Path(samples[number][0]).read_bytes()]


def test_all_files_come_back_in_any_order(stored: tuple[StoredCopy, Format], samples: Samples) -> None:
    copy, how = stored
    numbers = random.Random(1).sample(range(70), 70)
    assert differing(copy.reader(how), samples, numbers) == []


def test_what_is_known_of_a_copy_is_true(stored: tuple[StoredCopy, Format], samples: Samples) -> None:
    copy, _ = stored
    assert copy.about.samples == 70
    assert copy.about.source_bytes == sum(Path(path).stat().st_size for path, _ in samples)
    assert copy.about.stored_bytes == sum(file.stat().st_size for file in copy.files) > copy.about.source_bytes
    assert copy.about.files == len(copy.files) >= len(copy.parts)
    assert copy.about.write_s > 0


def test_the_same_files_give_the_same_copy(stored: tuple[StoredCopy, Format], samples: Samples, tmp_path: Path) -> None:
    copy, how = stored
    again = written_copy(samples, copy.about.format, how, cache_dir=tmp_path)
    assert again.about.checksum == copy.about.checksum


def test_threads_read_at_once(stored: tuple[StoredCopy, Format], samples: Samples) -> None:
    copy, how = stored
    reader = copy.reader(how)
    with ThreadPoolExecutor(4) as pool:
        parts = [pool.submit(differing, reader, samples, [*range(start, 70, 4)] * 3) for start in range(4)]
        assert [part.result() for part in parts] == [[]] * 4


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="no /proc")
def test_threads_share_open_parts_where_they_can(
    stored: tuple[StoredCopy, Format], samples: Samples, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy, how = stored
    reader = copy.reader(how)
    if not how.reads.threads_share:
        return
    before, together, opens = {*Path("/proc/self/fd").iterdir()}, threading.Barrier(3), how.reads.open
    monkeypatch.setattr(how.reads, "open", lambda self, part: (together.wait(10), opens(self, part))[1])
    with ThreadPoolExecutor(3) as pool:
        assert [*pool.map(lambda _: reader(0), range(3))] == [Path(samples[0][0]).read_bytes()] * 3
    monkeypatch.undo()
    assert differing(reader, samples, [*range(70)]) == []
    assert len({*Path("/proc/self/fd").iterdir()} - before) <= len(copy.parts)


def test_too_many_open_files_do_not_blame_the_copy(
    stored: tuple[StoredCopy, Format], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> Any:
        raise OSError(errno.EMFILE, "Too many open files")

    copy, how = stored
    monkeypatch.setattr(how.reads, "open", full)
    with pytest.raises(OSError, match="ulimit -n") as caught:
        copy.reader(how)(0)
    assert "delete" not in str(caught.value)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_read_after_the_first_has(method: str, stored: tuple[StoredCopy, Format], samples: Samples) -> None:
    copy, how = stored
    reader = copy.reader(how)
    reader(0)
    context = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        parts = [pool.apply_async(differing, (reader, samples, [*range(start, 70, 2)])) for start in (0, 1)]
        assert [part.get(timeout=60) for part in parts] == [[], []]
    assert differing(reader, samples, [3, 69]) == []


def test_a_pickled_reader_reads(stored: tuple[StoredCopy, Format], samples: Samples) -> None:
    copy, how = stored
    reader = copy.reader(how)
    reader(1)
    assert differing(pickle.loads(pickle.dumps(reader)), samples, [0, 69]) == []


ENDS_IN_PADDING = ("tar",)


@pytest.mark.parametrize("left", ["no file", 0.0, 0.3, "all but 60 bytes"])
def test_each_damaged_file_of_a_part_is_an_error_that_names_the_part(
    left: float | str, samples: Samples, tmp_path: Path, stored: tuple[StoredCopy, Format]
) -> None:
    """`left` is the share that is not cut off."""
    name, how = stored[0].about.format, stored[1]
    if left == "all but 60 bytes" and name in ENDS_IN_PADDING:
        pytest.skip("nothing is lost by that")
    copy = written_copy(samples, name, how, cache_dir=tmp_path)
    for file in [file for file in copy.files if file.parent == copy.parts[-1]]:
        whole = file.read_bytes()
        if left == "no file":
            file.unlink()
        else:
            file.write_bytes(whole[: -60 if isinstance(left, str) else int(len(whole) * left)])
        reader = copy.reader(how)
        with pytest.raises(OSError, match=copy.parts[-1].name) as caught:
            [reader(number) for number in range(69, -1, -1)]
        assert "\n" not in str(caught.value)
        assert "to write the copy again" in str(caught.value)
        file.write_bytes(whole)


def test_a_damaged_copy_is_written_again(samples: Samples, tmp_path: Path, stored: tuple[StoredCopy, Format]) -> None:
    name, how = stored[0].about.format, stored[1]
    for file in written_copy(samples, name, how, cache_dir=tmp_path).files:
        file.unlink()
        copy = written_copy(samples, name, how, cache_dir=tmp_path)
        assert differing(copy.reader(how), samples, [*range(70)]) == []


def test_a_writer_that_was_stopped_leaves_parts_that_the_next_one_keeps(
    samples: Samples, tmp_path: Path, stored: tuple[StoredCopy, Format]
) -> None:
    name, how = stored[0].about.format, stored[1]

    def stop(written: int, _: int) -> None:
        if written == 40:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        written_copy(samples, name, how, cache_dir=tmp_path, on_progress=stop)
    left = {path: path.stat().st_ino for path in tmp_path.rglob("part-*") if path.is_dir()}
    assert bool(left) == (how.most_parts != 1)
    copy = written_copy(samples, name, how, cache_dir=tmp_path)
    assert {path: path.stat().st_ino for path in left} == left
    assert differing(copy.reader(how), samples, [*range(70)]) == []
