"""A real Chromium: LOADERBENCH_CHROMIUM names it, LOADERBENCH_REQUIRE_BROWSER=1 forbids to skip."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "report"))

import run_factory as runs

from loaderbench.records import RunRecord
from loaderbench.report.document import build_document
from loaderbench.report.html import render_html

NAMES = ("chromium", "chromium-browser", "google-chrome")
DRAWN = "html.drawn"
PHONE = {"width": 360, "height": 740}
DESKTOP = {"width": 1280, "height": 720}
FITTED = """() => Array.from(document.querySelectorAll(".chart")).every((place) => {
  const drawn = place.querySelector("svg.main-svg");
  return !drawn || !place.clientWidth || Math.abs(drawn.getBoundingClientRect().width - place.clientWidth) < 2;
})"""
AS_AT_FIRST = """() => {
  window.folds ||= Array.from(document.querySelectorAll("details"), (fold) => [fold, fold.open]);
  window.folds.forEach(([fold, open]) => { fold.open = open; });
  document.activeElement.blur();
  document.querySelectorAll(".scroll").forEach((box) => { box.scrollLeft = 0; });
  window.scrollTo(0, 0);
  if (!location.hash) return;
  history.replaceState(null, "", location.pathname);
  window.dispatchEvent(new HashChangeEvent("hashchange"));
}"""


def missing(reason: str) -> None:
    if os.environ.get("LOADERBENCH_REQUIRE_BROWSER") == "1":
        pytest.fail(f"LOADERBENCH_REQUIRE_BROWSER=1, but {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    path = os.environ.get("LOADERBENCH_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        missing("no Chromium was found: set LOADERBENCH_CHROMIUM")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright is not installed")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--process-per-site"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def new_page(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Opens a tab. Those with scripts share one process of Chromium, which compiles plotly once, those without another.

    A tab that stays open keeps each process alive.
    """
    (empty := tmp_path_factory.mktemp("empty") / "page.html").write_text("<title>stays open</title>")
    with ExitStack() as contexts:
        with_scripts, without = (
            contexts.enter_context(closing(browser.new_context(java_script_enabled=scripts)))
            for scripts in (True, False)
        )
        for context in (with_scripts, without):
            context.new_page().goto(empty.as_uri())

        def open_tab(*, java_script_enabled: bool = True, color_scheme: str = "light", viewport: Any = DESKTOP) -> Any:
            page = (with_scripts if java_script_enabled else without).new_page()
            page.set_viewport_size(viewport)
            page.emulate_media(color_scheme=color_scheme)
            return page

        yield open_tab


def close_page(page: Any) -> None:
    """Close a tab; the next one begins without what this one kept."""
    page.evaluate("localStorage.clear()")
    page.close()


class Visit:
    """One open page, with everything it asked for and complained about; `before` is a script that runs ahead of its."""

    def __init__(self, new_page: Any, path: Path, before: str = "", address: str = "", **options: Any) -> None:
        self.page = new_page(**options)
        if before:
            self.page.add_init_script(before)
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        self.page.goto(path.as_uri() + address)

    def drawn(self) -> Any:
        """The page with its charts, if it has any."""
        if self.page.locator("#figures").count():
            self.page.wait_for_selector(DRAWN, state="attached")
        return self.page

    @property
    def overflow(self) -> int:
        """By how many pixels the page is wider than its window."""
        return int(
            self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"),
        )


class SharedVisit(Visit):
    """A page that several tests look at; `first_overflow` is that of a phone that opened it."""

    def __init__(self, new_page: Any, path: Path) -> None:
        super().__init__(new_page, path, viewport=PHONE)
        self.drawn()
        self.first_overflow, self.first_complaints = self.overflow, list(self.complaints)

    def as_at_first(self, width: int, height: int, scheme: str) -> Any:
        """The page with nothing chosen, folded as it was, in a window of that size that its charts fill."""
        self.complaints.clear()
        self.page.bring_to_front()
        self.page.emulate_media(color_scheme=scheme, media="screen")
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.evaluate(AS_AT_FIRST)
        self.page.wait_for_function(FITTED)
        return self.page


@pytest.fixture
def open_file(new_page: Any) -> Iterator[Any]:
    """Opens a page that lies on the disk."""
    opened: list[Visit] = []

    def open_page(path: Path, **options: Any) -> Visit:
        opened.append(Visit(new_page, path, **options))
        return opened[-1]

    yield open_page
    for one in opened:
        close_page(one.page)


def write_page(path: Path, run: RunRecord, timeline: Any = runs.timeline) -> Path:
    path.write_text(render_html(build_document(run, timeline(run))), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def first_visit(new_page: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Opens the page of a run once for all tests that choose, fold, sort or size, and change nothing else."""
    opened: dict[Any, SharedVisit] = {}

    def open_page(make: Any) -> SharedVisit:
        if make not in opened:
            path = write_page(tmp_path_factory.mktemp("page") / "report.html", make())
            opened[make] = SharedVisit(new_page, path)
        return opened[make]

    yield open_page
    for one in opened.values():
        close_page(one.page)


@pytest.fixture
def shared(first_visit: Any) -> Any:
    """The page of a run that other tests look at, too, as if nobody had touched it."""

    def open_page(make: Any, width: int = 1280, height: int = 720, scheme: str = "light") -> Any:
        return first_visit(make).as_at_first(width, height, scheme)

    return open_page


@pytest.fixture
def visit(open_file: Any, tmp_path: Path) -> Any:
    """Draws the page of a run and opens it."""

    def open_page(run: RunRecord, timeline: Any = runs.timeline, **options: Any) -> Any:
        return open_file(write_page(tmp_path / "report.html", run, timeline), **options)

    return open_page
