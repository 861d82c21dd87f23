"""Where pyarrow is installed but cannot be imported, as with a NumPy that is too old for it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from loaderbench.errors import MissingError
from loaderbench.records import Readings, TimelinePoint
from loaderbench.store import Store, note_without_parquet, readable_timeline

POINTS = Readings([TimelinePoint("a", 0.1, "x", 5.0)])
SAID = "pyarrow requires NumPy 2.0 or newer, found 1.26.4"


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "packages" / "pyarrow"
    place.mkdir(parents=True)
    (place / "__init__.py").write_text(f"raise ImportError({SAID!r})")
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyarrow"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(place.parent))


@pytest.mark.usefixtures("broken")
def test_a_run_is_saved_without_its_timeline_and_a_note_says_why(tmp_path: Path) -> None:
    store = Store(tmp_path / "run")
    store.write_timeline(POINTS)
    store.close()
    assert not (tmp_path / "run" / "timeline.parquet").exists()
    assert note_without_parquet() == [f"the timeline was not saved: {SAID}; install a compatible version of pyarrow"]


@pytest.mark.usefixtures("broken")
def test_a_timeline_that_is_there_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "timeline.parquet").touch()
    with pytest.raises(MissingError, match="install a compatible version of pyarrow"):
        readable_timeline(tmp_path)


def test_a_pyarrow_that_works_is_no_note() -> None:
    assert note_without_parquet() == []
