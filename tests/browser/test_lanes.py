"""The swim lanes on the page: no barrier, no script needed, and no width too small."""

from __future__ import annotations

from typing import Any

import pytest
import run_lanes as own
import run_profiles as profiles
from test_accessibility import findings

from loaderbench.records import Readings, RunRecord

pytestmark = pytest.mark.browser
WIDTHS = """() => Array.from(document.querySelectorAll("#lanes .lane svg:first-of-type"),
  (drawn) => drawn.parentElement.classList.contains("lane") ? drawn.getBoundingClientRect().width : 999)"""


def readings(run: RunRecord) -> Readings:
    return own.readings(run)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.slow
def test_the_lanes_have_no_barrier(visit: Any, scheme: str) -> None:
    seen = visit(profiles.traced(), readings, color_scheme=scheme, viewport={"width": 1200, "height": 900})
    seen.page.evaluate("document.querySelectorAll('#lanes details').forEach((fold) => { fold.open = true; })")
    assert seen.page.locator("#lanes .lane-rows").first.get_attribute("role") == "img"
    assert findings(seen.page) == []
    assert seen.complaints == []


WAYS = [(360, True), (1280, False)]
MORE_WAYS = [pytest.param(*way, marks=pytest.mark.slow) for way in ((360, False), (1280, True))]


@pytest.mark.parametrize(("width", "scripts"), [*WAYS, *MORE_WAYS])
def test_they_are_drawn_without_scripts_and_scroll_by_themselves(visit: Any, width: int, scripts: bool) -> None:
    seen = visit(profiles.traced(), readings, viewport={"width": width, "height": 800}, java_script_enabled=scripts)
    rectangles = seen.page.locator("#lanes rect.b-decode")
    assert rectangles.count() > 20
    longest = max((rectangles.nth(i).bounding_box() for i in range(rectangles.count())), key=lambda box: box["width"])
    assert longest["width"] > 50
    if scripts:
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
        assert all(drawn > 300 for drawn in seen.page.evaluate(WIDTHS))


def test_they_print_in_full(visit: Any) -> None:
    seen = visit(profiles.traced(), readings, viewport={"width": 720, "height": 1000})
    seen.page.emulate_media(media="print")
    for box in (
        seen.page.locator("#lanes .scroll").nth(i) for i in range(seen.page.locator("#lanes figure .scroll").count())
    ):
        assert box.evaluate("(found) => found.scrollWidth <= found.clientWidth + 1")
