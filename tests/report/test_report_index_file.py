"""Where the list of runs is written, and what it never writes over."""

import logging
from pathlib import Path
from types import SimpleNamespace

import pytest
import run_factory as runs
from run_folders import put

from loaderbench.report import index
from loaderbench.report.index import update_index


@pytest.fixture
def reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    monkeypatch.chdir(tmp_path)
    parent = tmp_path / "reports"
    parent.mkdir()
    return SimpleNamespace(folder=put(parent, "r1", runs.typical()), parent=parent, file=parent / "index.html")


def test_the_list_is_drawn_where_runs_land_and_again_with_the_next(reports: SimpleNamespace) -> None:
    assert update_index(Path("reports/r1")) == reports.file
    before = reports.file.read_text()
    put(reports.parent, "r2", runs.typical(), 2)
    assert update_index(reports.parent / "r2") == reports.file

    assert "r2/report.html" not in before
    assert "r2/report.html" in reports.file.read_text()
    assert not list(reports.parent.glob(".*"))


def test_elsewhere_there_is_a_list_only_where_one_was_begun(reports: SimpleNamespace, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    folder = put(other, "r", runs.typical())
    assert update_index(folder) is None
    assert not (other / "index.html").exists()

    update_index(reports.folder)
    reports.file.rename(other / "index.html")
    assert update_index(folder) == other / "index.html"
    assert "r/report.html" in (other / "index.html").read_text()


FOREIGN = [
    "",
    "<title>mine</title>",
    '<meta name="generator" content="Hugo 0.1">',
    '<meta name="generator" content="loaderbench 0.1.0">',  # the page of a run, put there to be the first
    "x" * 5000 + '<meta name="generator" content="loaderbench 0.1.0, list of runs">',
]


@pytest.mark.parametrize("text", FOREIGN)
def test_a_file_of_somebody_else_is_never_written_over(reports: SimpleNamespace, text: str) -> None:
    reports.file.write_text(text)

    assert update_index(reports.folder) is None
    assert reports.file.read_text() == text


def test_a_link_or_a_folder_in_its_place_stays(reports: SimpleNamespace, tmp_path: Path) -> None:
    update_index(reports.folder)
    reports.file.rename(tmp_path / "kept.html")
    reports.file.symlink_to(tmp_path / "kept.html")
    assert update_index(reports.folder) is None
    reports.file.unlink()
    reports.file.symlink_to(tmp_path / "gone.html")
    assert update_index(reports.folder) is None
    reports.file.unlink()
    reports.file.mkdir()
    assert update_index(reports.folder) is None


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), ZeroDivisionError("a fault of ours\nhere")])
def test_a_list_that_cannot_be_written_is_one_line_and_loses_nothing(
    reports: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    update_index(reports.folder)
    before = reports.file.read_text()

    def fail(*_: object) -> None:
        raise error

    ours = isinstance(error, ZeroDivisionError)
    monkeypatch.setattr(*((index, "render_index", fail) if ours else (Path, "replace", fail)))
    with caplog.at_level(logging.WARNING):
        assert update_index(reports.folder) is None

    assert len(caplog.messages) == 1
    assert "\n" not in caplog.messages[0]
    assert "index.html: was not written: " in caplog.messages[0]
    assert reports.file.read_text() == before
    assert not list(reports.parent.glob(".*"))
