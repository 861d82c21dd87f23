"""Files are put into the page cache, or out of it; neither stumbles over a file that is gone."""

import os
from pathlib import Path

import pytest

from loaderbench.datasets.page_cache import evict, warm


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="this system cannot evict a file from the page cache")
def test_evicting_and_warming_read_nothing_wrong(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"x" * 100_000)
    paths = [str(file), str(tmp_path / "gone")]
    evict(paths)
    warm(paths)
    assert file.read_bytes() == b"x" * 100_000


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="this system cannot evict a file from the page cache")
def test_a_file_system_without_fsync_is_evicted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are only read, such as squashfs."""

    def fails(_: int) -> None:
        raise OSError(22, "Invalid argument")

    forgotten: list[int] = []
    monkeypatch.setattr("loaderbench.datasets.page_cache.os.fsync", fails)
    monkeypatch.setattr("loaderbench.datasets.page_cache.os.posix_fadvise", lambda *given: forgotten.append(given[-1]))
    (tmp_path / "a").write_bytes(b"x")
    evict([str(tmp_path / "a")])
    assert forgotten == [os.POSIX_FADV_DONTNEED]


def test_warming_stops_at_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loaderbench.datasets.page_cache.WARM_BYTES", 15)
    read: list[int] = []
    real = os.read
    monkeypatch.setattr(os, "read", lambda file, size: read.append(size) or real(file, size))
    for name in "abc":
        (tmp_path / name).write_bytes(b"x" * 10)
    warm(str(tmp_path / name) for name in "abc")
    assert read == [10, 10]


def test_a_file_that_cannot_be_read_is_left_for_the_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> bytes:
        raise OSError(5, "Input/output error")

    (tmp_path / "a.jpg").write_bytes(b"a")
    monkeypatch.setattr("loaderbench.datasets.page_cache.os.read", fails)
    warm([str(tmp_path / "a.jpg")])
    assert len(list(tmp_path.iterdir())) == 1
