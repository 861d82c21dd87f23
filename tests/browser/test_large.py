"""A run of 2,000 trials, saved and read back: its page is drawn, stays light, and lets a configuration be chosen."""

from pathlib import Path
from typing import Any

import pytest
from run_large import large

from loaderbench.records import Readings, TimelinePoint
from loaderbench.report.document import build_document
from loaderbench.report.html import render_html
from loaderbench.store import Store, read_run, readable_timeline

pytestmark = [pytest.mark.browser, pytest.mark.slow]
READINGS = 80  # of each trial, of one metric


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """The page of a saved run."""
    run = large()
    store = Store(tmp_path / "run")
    store.write_run(run)
    store.write_timeline(
        Readings(TimelinePoint(t.id, i / 10, "data_wait_s", i / 1e3) for t in run.trials for i in range(READINGS))
    )
    store.close()
    saved, (readings, unreadable) = read_run(tmp_path / "run"), readable_timeline(tmp_path / "run")
    assert not unreadable
    assert len(readings) == READINGS * len(run.trials)
    return store.write_page(render_html(build_document(saved, readings)))


def test_a_very_long_run_has_a_light_page_that_works(page: Path, open_file: Any) -> None:
    seen = open_file(page)
    shown = seen.drawn()
    before = shown.locator("#chosen code").inner_text()
    shown.locator("td[data-choice='640'] a").first.click()
    shown.wait_for_url("**#configuration=640")

    assert page.stat().st_size < 4_000_000
    assert seen.complaints == []
    assert shown.locator("#chosen code").inner_text() != before
    assert shown.locator("table.heat").count() > 1
    assert "run.json, with all 1,998 trials, is in the folder of this report" in shown.locator("#trials").inner_text()
    assert shown.locator("#trials tbody tr").count() == 400
