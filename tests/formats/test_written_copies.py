"""Copies in another format are written once, in parts, and used only when they are complete."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from loaderbench.errors import MissingError
from loaderbench.formats import Item, ReadEncoded, copies as module, written_copy
from loaderbench.formats.tar import Tar

Samples = list[tuple[str, int]]


@pytest.fixture
def samples(tmp_path: Path) -> Samples:
    (tmp_path / "files").mkdir()
    found = [(str(tmp_path / "files" / f"{number:02d}.jpg"), number % 2) for number in range(32)]
    for path, label in found:
        Path(path).write_bytes(path.encode() + bytes(label))
    return found


class Counting(Tar):
    """Notes the first key of each part that is written; fails at part `fails_at` with `error`."""

    def __init__(self, fails_at: int = -1, error: BaseException | None = None) -> None:
        self.begun: list[str] = []
        self._fails_at, self._error = fails_at, error

    def write_part(self, items: Iterable[Item], folder: Path) -> None:
        listed = [*items]
        if len(self.begun) == self._fails_at and self._error is not None:
            (folder / "half").write_bytes(b"half")
            raise self._error
        self.begun.append(listed[0].key)
        super().write_part(listed, folder)


def test_a_copy_is_written_once(samples: Samples, tmp_path: Path) -> None:
    first, second = Counting(), Counting()
    one = written_copy(samples, "tar", first, cache_dir=tmp_path)
    other = written_copy(samples, "tar", second, cache_dir=tmp_path)
    assert (len(first.begun), second.begun) == (16, [])
    assert other == one


@pytest.mark.parametrize("change", ["content", "label", "order", "fewer"])
def test_other_files_are_another_copy(change: str, samples: Samples, tmp_path: Path) -> None:
    one = written_copy(samples, "tar", Tar(), cache_dir=tmp_path)
    if change == "content":
        Path(samples[3][0]).write_bytes(b"other")
    others = {
        "content": samples,
        "label": [*samples[:-1], (samples[-1][0], 7)],
        "order": samples[::-1],
        "fewer": samples[:-1],
    }[change]
    other = written_copy(others, "tar", Tar(), cache_dir=tmp_path)
    assert other.folder != one.folder
    assert other.reader(Tar())(3) == Path(others[3][0]).read_bytes()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("of the library")])
def test_a_stopped_writer_continues_with_the_part_that_it_was_at(
    error: BaseException, samples: Samples, tmp_path: Path
) -> None:
    with pytest.raises(type(error)):
        written_copy(samples, "tar", Counting(5, error), cache_dir=tmp_path)
    again = Counting()
    copy = written_copy(samples, "tar", again, cache_dir=tmp_path)
    assert again.begun == [f"{number:09d}" for number in range(10, 32, 2)]
    assert copy.about.checksum == written_copy(samples, "tar", Tar(), cache_dir=tmp_path / "other").about.checksum
    assert copy.about.write_s > 0


KILLED = """\
import os, signal, sys
from pathlib import Path
from loaderbench.formats import written_copy
from loaderbench.formats.tar import Tar

class Killed(Tar):
    def write_part(self, items, folder):
        if folder.name.startswith("part-00003"):
            (folder / "shard.tar").write_bytes(b"half of a shard")
            os.kill(os.getpid(), signal.SIGKILL)
        super().write_part(items, folder)

files = sorted(Path(sys.argv[1]).iterdir())
samples = [(str(file), number % 2) for number, file in enumerate(files)]
written_copy(samples, "tar", Killed(), cache_dir=Path(sys.argv[2]))
"""


def test_nothing_that_a_killed_writer_left_half_is_used(samples: Samples, tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "files"), str(tmp_path)], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert not [*tmp_path.rglob("copy.json")]
    again = Counting()
    copy = written_copy(samples, "tar", again, cache_dir=tmp_path)
    assert len(again.begun) == 13
    assert [copy.reader(Tar())(number) for number in range(32)] == [Path(path).read_bytes() for path, _ in samples]


def test_two_writers_at_once_write_it_once(samples: Samples, tmp_path: Path) -> None:
    both = Counting(), Counting()
    threads = [
        threading.Thread(target=written_copy, args=(samples, "tar", how), kwargs={"cache_dir": tmp_path})
        for how in both
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(len(how.begun) for how in both) == [0, 16]


def test_progress_is_told_for_each_sample(samples: Samples, tmp_path: Path) -> None:
    said: list[tuple[int, int]] = []
    written_copy(samples, "tar", Tar(), cache_dir=tmp_path, on_progress=lambda done, total: said.append((done, total)))
    assert said == [(number, 32) for number in range(1, 33)]


def test_a_file_that_cannot_be_read_is_one_line(samples: Samples, tmp_path: Path) -> None:
    Path(samples[9][0]).unlink()
    with pytest.raises(MissingError, match=r"09\.jpg: cannot read: No such file or directory$"):
        written_copy(samples, "tar", Tar(), cache_dir=tmp_path)


def test_a_full_disk_is_one_line_and_keeps_the_parts_that_are_complete(samples: Samples, tmp_path: Path) -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with pytest.raises(
        MissingError, match=r"^format tar: no room in .* for a copy of [\d.,]+ \w+; .*LOADERBENCH_CACHE"
    ) as caught:
        written_copy(samples, "tar", Counting(4, full), cache_dir=tmp_path)
    assert "\n" not in str(caught.value)
    assert not [*tmp_path.rglob("*.unfinished"), *tmp_path.rglob("*.part")]
    again = Counting()
    written_copy(samples, "tar", again, cache_dir=tmp_path)
    assert len(again.begun) == 12


def test_too_little_room_is_found_before_anything_is_written(
    samples: Samples, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    how = Counting()
    monkeypatch.setattr(module.shutil, "disk_usage", lambda _: SimpleNamespace(free=100))
    with pytest.raises(MissingError, match="no room"):
        written_copy(samples, "tar", how, cache_dir=tmp_path)
    assert how.begun == []


def test_large_copies_have_parts_of_64_mib(samples: Samples, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = Path(samples[0][0]).stat().st_size
    monkeypatch.setattr(module, "PART_BYTES", size)
    copy = written_copy(samples, "tar", Tar(), cache_dir=tmp_path)
    assert (len(copy.parts), copy.part_samples) == (32, 1)


def test_a_format_of_one_part_has_one(samples: Samples, tmp_path: Path) -> None:
    class Whole(Tar):
        most_parts = 1

        def finish(self, folder: Path, parts: Sequence[Path]) -> None:
            (folder / "index").write_text(" ".join(part.name for part in parts))

        def reader(self, parts: Sequence[Path], part_samples: int) -> ReadEncoded:
            assert part_samples == 32
            return super().reader(parts, part_samples)

    copy = written_copy(samples, "tar", Whole(), cache_dir=tmp_path)
    assert [part.name for part in copy.parts] == ["part-00000"]
    assert [file.name for file in copy.files] == ["index", "shard.tar"]
    assert copy.reader(Whole())(31) == Path(samples[31][0]).read_bytes()
