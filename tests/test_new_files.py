"""New files: complete or not at all, under names that are free."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

import pytest

from loaderbench.new_files import free_place, numbered, whole_file, write_whole


@pytest.mark.parametrize("content", ["größer\n", b"\x00\xff"])
@pytest.mark.parametrize("options", [{}, {"shared": True}, {"sync": True}])
def test_a_file_is_replaced_and_nothing_else_is_left(
    tmp_path: Path, content: str | bytes, options: dict[str, bool]
) -> None:
    file = tmp_path / "a.json"
    for _ in range(2):
        write_whole(file, content, **options)
        assert file.read_bytes() == (content.encode() if isinstance(content, str) else content)
        assert [*tmp_path.iterdir()] == [file]


def write_half(file: Path, error: BaseException, *, shared: bool) -> None:
    with whole_file(file, shared=shared) as part:
        part.write_text("half")
        raise error


@pytest.mark.parametrize("error", [OSError("full"), ZeroDivisionError(), KeyboardInterrupt()])
@pytest.mark.parametrize("shared", [True, False])
def test_a_file_that_cannot_be_written_stays_as_it_was(tmp_path: Path, error: BaseException, shared: bool) -> None:
    file = tmp_path / "a.json"
    file.write_text("before")
    with pytest.raises(type(error)):
        write_half(file, error, shared=shared)
    assert [*tmp_path.iterdir()] == [file]
    assert file.read_text() == "before"


def test_writers_of_one_file_do_not_meet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with whole_file(tmp_path / "a", shared=True) as one:
        one.touch()
        monkeypatch.setattr(os, "getpid", lambda: 1)
        with whole_file(tmp_path / "a", shared=True) as other:
            other.touch()
    assert one != other


def test_the_disk_has_a_file_before_its_name_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, synced = tmp_path / "a", list[str]()

    def fsync(descriptor: int) -> None:
        assert not file.exists()
        (part,) = tmp_path.iterdir()
        assert os.fstat(descriptor).st_ino == part.stat().st_ino
        synced.append(part.read_text())

    monkeypatch.setattr(os, "fsync", fsync)
    write_whole(file, "text", sync=True)
    write_whole(tmp_path / "b", "text")
    assert synced == ["text"]


def test_a_name_that_is_taken_gets_the_next_number(tmp_path: Path) -> None:
    for name in ("run.1", "run.1-2", "run.1-3"):
        assert free_place(tmp_path / "run.1") == tmp_path / name
        (tmp_path / name).mkdir()
    assert [*islice(numbered("a"), 3)] == ["a", "a-2", "a-3"]
