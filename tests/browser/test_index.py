"""The list of runs in a real Chromium."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import run_factory as runs
import run_profiles as profiles
from run_hostile import hostile

from loaderbench.records import RunRecord
from loaderbench.report.index import build_index, render_index
from loaderbench.store import run_json
from loaderbench.store.run_list import list_runs

pytestmark = pytest.mark.browser
RUNS = {
    "images-1": runs.typical,
    "images-2": runs.all_failed,
    "images-3": runs.interrupted,
    "images-4": runs.typical,
    "<img src=x onerror=alert(1)> #?%": hostile,
    "x" * 200: runs.without_best,
    "train": profiles.traced,
}


def put(parent: Path, name: str, run: RunRecord) -> None:
    folder = parent / name
    folder.mkdir()
    (folder / "run.json").write_text(run_json(replace(run, suite={})))
    (folder / "report.html").write_text("<title>the page of a run</title>")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for name, make in RUNS.items():
        put(folder, name, make())
    (folder / "broken").mkdir()
    (folder / "broken" / "run.json").write_text("{")
    file = folder / "index.html"
    file.write_text(render_index(build_index(list_runs(folder), "0.1.0")), encoding="utf-8")
    return file


@pytest.fixture
def opened(new_page: Any, index: Path) -> Iterator[Any]:
    pages = []

    def open_page(**options: Any) -> Any:
        page = new_page(**options)
        pages.append(page)
        page.seen = []
        for event in ("request", "console", "pageerror", "dialog"):
            page.on(event, lambda found, event=event: page.seen.append((event, str(found))))
        page.goto(index.as_uri())
        return page

    yield open_page
    for page in pages:
        page.close()


def overflow(page: Any) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


@pytest.mark.parametrize("width", [320, 360, 720, 1000, 1400])
def test_it_opens_from_disk_asks_for_nothing_says_nothing_and_does_not_scroll_sideways(opened: Any, width: int) -> None:
    page = opened(viewport={"width": width, "height": 740})

    assert [event for event, _ in page.seen] == ["request"]
    assert overflow(page) == 0
    assert page.locator("img").count() == 0
    hidden = "Array.from(document.querySelectorAll('td, h2, p'), (e) => e.scrollWidth - e.clientWidth)"
    assert max(page.evaluate(hidden)) <= 1


def test_without_scripts_it_is_the_same(opened: Any) -> None:
    text = "document.body.innerText"

    assert opened(java_script_enabled=False).inner_text("body") == opened().evaluate(text)


def test_every_link_leads_to_the_page_of_its_run(opened: Any) -> None:
    page = opened()
    links = page.locator("td.run a")

    assert links.count() == len(RUNS)
    for number in range(len(RUNS)):
        page.locator("td.run a").nth(number).click()
        assert page.title() == "the page of a run"
        page.go_back()


def test_it_follows_the_system_in_dark(opened: Any) -> None:
    color = "getComputedStyle(document.body).backgroundColor"

    assert opened(color_scheme="dark").evaluate(color) == "rgb(15, 19, 24)"
    assert opened(color_scheme="light").evaluate(color) == "rgb(255, 255, 255)"


@pytest.mark.parametrize("width", [360, 1400])
def test_a_table_is_one_for_whoever_listens_whatever_it_looks_like(opened: Any, width: int) -> None:
    page = opened(viewport={"width": width, "height": 740})
    table = page.get_by_role("table", name="Runs of images").first

    assert table.get_by_role("columnheader").count() == 5
    assert table.get_by_role("row").count() == 6
    assert page.get_by_role("img", name="Samples/s of 5 runs, oldest first: ").count() == 1


LOOKS = [(360, "light"), (1400, "dark")]
MORE_LOOKS = [pytest.param(*look, marks=pytest.mark.slow) for look in ((360, "dark"), (1400, "light"))]


@pytest.mark.parametrize(("width", "scheme"), [*LOOKS, *MORE_LOOKS])
def test_axe_finds_nothing(opened: Any, width: int, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    found = axe.Axe().run(opened(color_scheme=scheme, viewport={"width": width, "height": 740}))

    assert found.violations_count == 0, found.generate_report()
