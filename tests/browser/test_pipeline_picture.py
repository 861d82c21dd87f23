"""The picture of the pipeline in a browser: on a phone, on paper, in the dark, without scripts, read aloud."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import run_factory as runs
import run_profiles as profiles
from run_recorded import recorded

pytestmark = pytest.mark.browser

EXAMPLE = "example_two_cores"
MORE = ("scenario_run_straggler_w4", "synthetic_traced_profile", "run_resumed")
NAMES = [EXAMPLE, "profile_generator_untraced", *(pytest.param(name, marks=pytest.mark.slow) for name in MORE)]
COLORS = """(selector) => { const look = getComputedStyle(document.querySelector(selector));
  return [look.fill, look.stroke, look.color]; }"""


def opened(visit: Any, run: Any, width: int = 1200, **options: Any) -> Any:
    return visit(run, lambda _: (), viewport={"width": width, "height": 800}, java_script_enabled=False, **options).page


def boxes(page: Any, selector: str) -> list[Any]:
    return [one.bounding_box() for one in page.locator(selector).all()]


@pytest.mark.parametrize("name", NAMES)
def test_its_pieces_join_and_its_text_stays_in_its_column_on_any_screen(visit: Any, name: str) -> None:
    page = opened(visit, recorded(name))
    for width in (1200, 360):
        page.set_viewport_size({"width": width, "height": 800})
        rows, drawings = boxes(page, ".pipe li"), boxes(page, ".pipe li > svg")
        assert len(rows) >= 2
        for upper, lower in pairwise(drawings):
            assert abs(upper["y"] + upper["height"] - lower["y"]) <= 1.5
            assert (upper["x"], upper["width"]) == (lower["x"], lower["width"])
        assert all(drawn["width"] >= 80 and drawn["height"] >= 40 for drawn in drawings)
        for text in ("strong", ".pipe-tag", ".small", ".pipe-stages bdi"):
            texts = boxes(page, f".pipe-text > {text}, .pipe-text {text}")
            assert all(box["x"] + box["width"] <= drawings[0]["x"] + 1 for box in texts)
        assert all(box["x"] + box["width"] <= width for box in boxes(page, ".pipe-rate"))
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0


def test_the_bottleneck_is_narrower_than_the_target_that_is_drawn_across(visit: Any) -> None:
    page = opened(visit, recorded(EXAMPLE))
    shapes = "(shapes) => shapes.map((shape) => { const box = shape.getBBox(); return [box.x, box.x + box.width]; })"
    pipe = page.locator(".is-bottleneck .pipe-area").evaluate_all(shapes)[0]
    flow = page.locator(".is-bottleneck .pipe-flow").evaluate_all(shapes)[0]
    left, right = page.locator(".is-bottleneck .pipe-target").evaluate_all(shapes)

    assert left[0] < pipe[0] < flow[0] < flow[1] < pipe[1] < right[1]
    assert page.locator(".pipe-target").count() == 2 * page.locator(".pipe li").count()


def test_it_has_colors_of_its_own_in_light_and_in_dark(visit: Any) -> None:
    light, dark = (opened(visit, recorded(EXAMPLE), color_scheme=scheme) for scheme in ("light", "dark"))
    for selector in (".pipe-flow", ".pipe-area", ".is-bottleneck .pipe-wall", ".pipe-target", ".pipe-tag"):
        assert light.evaluate(COLORS, selector) != dark.evaluate(COLORS, selector), selector


def test_it_is_printed_in_its_colors(visit: Any) -> None:
    page = opened(visit, recorded(EXAMPLE))
    page.emulate_media(media="print")

    assert page.locator(".pipe-flow").first.is_visible()
    assert page.evaluate("getComputedStyle(document.querySelector('.pipe-flow')).printColorAdjust") == "exact"
    assert page.evaluate("getComputedStyle(document.querySelector('.pipe li')).breakInside") == "avoid"


def test_whoever_cannot_see_it_hears_the_parts_in_order_with_their_numbers(visit: Any) -> None:
    page = opened(visit, recorded(EXAMPLE))
    heard = page.locator(".pipe").aria_snapshot()

    said = [
        "Storage",
        "38,406",
        "2 workers",
        "decode 48%",
        "873",
        "2 CPUs",
        "bottleneck",
        "844",
        "Emulated GPU",
        "1,000",
    ]
    places = [heard.index(one) for one in said]
    assert places == sorted(places)
    assert heard.count("listitem") == 5
    assert page.locator(".pipe").evaluate("(one) => one.querySelectorAll('svg:not([aria-hidden=true])').length") == 0


def straggler() -> Any:
    return recorded("scenario_run_straggler_w4")


AXE = [profiles.generator, *(pytest.param(make, marks=pytest.mark.slow) for make in (runs.typical, straggler))]


@pytest.mark.parametrize("make", AXE)
def test_axe_finds_nothing_in_it(shared: Any, make: Any) -> None:
    from axe_playwright_python.sync_playwright import Axe

    for scheme in ("light", "dark"):
        page = shared(make, 1200, 900, scheme)
        said = Axe().run(page, context="#pipeline").response
        assert said["passes"]
        assert [f"{one['id']}: {x['html'][:120]}" for one in said["violations"] for x in one["nodes"]] == []
