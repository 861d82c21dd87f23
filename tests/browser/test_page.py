"""The page in a real Chromium."""

from typing import Any

import pytest
import run_factory as runs
import run_profiles as profiles
from run_hostile import hostile, surrogates

pytestmark = pytest.mark.browser
DRAWN = "html.drawn"


def background(page: Any) -> str:
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


def chart_ink(page: Any) -> str:
    return str(page.evaluate("document.querySelector('[data-figure=scaling] .xtick text').style.fill"))


def test_the_page_opens_from_disk_asks_for_nothing_and_draws_its_charts(first_visit: Any, shared: Any) -> None:
    seen, page = first_visit(runs.typical), shared(runs.typical)

    assert len(seen.requests) == 1
    assert seen.first_complaints == []
    assert page.locator("[data-figure=scaling] svg.main-svg").count() > 0
    assert page.locator("[data-figure=scaling] .errorbar").count() == 8
    assert page.locator("[data-figure=timeline] .scatterlayer .trace").count() == 5
    assert page.locator(".modebar").count() == 0


def test_without_scripts_the_whole_report_can_be_read_and_the_metric_chosen(visit: Any) -> None:
    page = visit(runs.typical(), java_script_enabled=False).page

    assert page.locator(".headline").is_visible()
    assert page.locator(".themes").is_visible() is False
    assert page.locator("td.is-best .m-0").text_content() == "\u2605best: 844"
    page.check("#pick-1")
    assert page.locator("td.is-best .m-0").is_visible() is False
    assert page.locator("td.is-best .m-1").is_visible()
    assert page.get_by_text("Charts need JavaScript").first.is_visible()


@pytest.mark.parametrize(
    "make",
    [
        runs.typical,
        runs.gpu_run,
        runs.all_failed,
        runs.partly_failed,
        hostile,
        *(pytest.param(make, marks=pytest.mark.slow) for make in (surrogates, runs.one_trial, runs.interrupted)),
    ],
)
def test_a_narrow_screen_does_not_scroll_sideways(first_visit: Any, make: Any) -> None:
    seen = first_visit(make)

    assert seen.first_overflow == 0
    assert seen.first_complaints == []


PROFILES = [
    *(profiles.traced, profiles.generator, profiles.nothing_measured),
    *(pytest.param(make, marks=pytest.mark.slow) for make in (profiles.untraced, profiles.hostile_profile)),
]


@pytest.mark.parametrize("make", PROFILES)
def test_a_profile_is_whole_at_once_asks_for_nothing_and_does_not_scroll_sideways(first_visit: Any, make: Any) -> None:
    seen = first_visit(make)
    seen.as_at_first(1200, 740, "light")

    assert seen.first_complaints == []
    assert len(seen.requests) == 1
    assert (seen.first_overflow, seen.overflow) == (0, 0)


def test_without_scripts_the_bars_of_a_profile_fill_their_width_in_the_order_of_the_table(visit: Any) -> None:
    size = {"width": 1200, "height": 900}
    page = visit(profiles.traced(), viewport=size, java_script_enabled=False).page
    bar = page.locator(".stack").first.bounding_box()
    pieces = page.locator(".stack").first.locator("rect")
    boxes = [pieces.nth(i).bounding_box() for i in range(pieces.count())]

    assert len(boxes) == 4
    assert [box["x"] for box in boxes] == sorted(box["x"] for box in boxes)
    assert abs(boxes[-1]["x"] + boxes[-1]["width"] - bar["x"] - bar["width"]) < 3
    assert abs(boxes[0]["width"] / bar["width"] - 0.41) < 0.01


def test_each_piece_of_a_bar_has_the_color_of_its_row_in_light_and_in_dark(shared: Any) -> None:
    pairs = (
        "Array.from(document.querySelectorAll('.stack'), (bar) => [Array.from(bar.querySelectorAll('rect'),"
        " (piece) => getComputedStyle(piece).fill), Array.from(bar.parentNode.querySelectorAll('.dot'),"
        " (dot) => getComputedStyle(dot).backgroundColor)])"
    )
    light, dark = (shared(profiles.traced, 1200, 900, scheme).evaluate(pairs) for scheme in ("light", "dark"))

    for found in (light, dark):
        assert len(found) == 3
        assert all(len(set(fills)) == len(fills) and fills == dots for fills, dots in found)
    assert light != dark


def test_the_tables_of_a_profile_stay_within_their_column(shared: Any) -> None:
    page = shared(profiles.traced, 1200, 900)
    widths = page.evaluate(
        "Array.from(document.querySelectorAll('.breakdown .scroll'), (b) => [b.scrollWidth, b.clientWidth])"
    )

    assert len(widths) == 6
    assert all(content == box for content, box in widths)


@pytest.mark.slow
def test_the_colors_follow_the_system_until_others_are_chosen_charts_included(visit: Any) -> None:
    page = visit(runs.typical(), color_scheme="dark").drawn()
    dark, dark_ink = background(page), chart_ink(page)
    page.check("input[name=theme][value=light]", force=True)
    light, light_ink = background(page), chart_ink(page)
    page.reload()
    page.wait_for_selector(DRAWN, state="attached")
    kept = background(page)
    page.check("input[name=theme][value=system]", force=True)

    assert (dark, light, kept) == ("rgb(15, 19, 24)", "rgb(255, 255, 255)", "rgb(255, 255, 255)")
    assert light_ink != dark_ink
    assert background(page) == dark


def test_hostile_strings_do_nothing(first_visit: Any, shared: Any) -> None:
    seen, page = first_visit(hostile), shared(hostile)
    page.hover("[data-figure=scaling] .point >> nth=0", force=True)

    assert seen.first_complaints == seen.complaints == []
    assert len(seen.requests) == 1
    assert page.locator("img").count() == 0


def test_a_trial_can_be_chosen_for_the_timeline(shared: Any) -> None:
    page = shared(runs.gpu_run)
    line = page.locator("[data-figure=timeline] path.js-line").first
    before = line.get_attribute("d")
    page.select_option("#timeline-trial", index=1)
    page.wait_for_timeout(200)

    assert line.get_attribute("d") != before


def test_a_heading_sorts_its_table_and_what_was_not_measured_stays_last(shared: Any) -> None:
    page = shared(runs.partly_failed)
    heading = page.locator("#trials thead button", has_text="Samples/s")
    rates = page.locator("#trials tbody tr td:nth-child(6)")
    for _ in range(2):
        heading.click()
        assert rates.last.inner_text() == "not measured"
    assert page.locator("#trials th[aria-sort=descending]").count() == 1
    assert rates.first.inner_text() == "844"


def test_the_run_can_be_downloaded_from_the_page(shared: Any) -> None:
    page = shared(runs.typical)
    for name in ("run.json", "trials.csv"):
        with page.expect_download() as found:
            page.get_by_role("button", name=name).click()
        assert found.value.suggested_filename == name


def test_a_download_that_begins_late_still_finds_its_content(shared: Any) -> None:
    page = shared(runs.typical)
    page.evaluate("() => { window.revoked = []; URL.revokeObjectURL = (url) => window.revoked.push(url); }")
    with page.expect_download():
        page.get_by_role("button", name="trials.csv").click()
    page.wait_for_timeout(1500)
    assert page.evaluate("window.revoked") == []


def test_a_snippet_can_be_copied(shared: Any) -> None:
    page = shared(runs.typical)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy the YAML snippet").first.click()
    page.get_by_text("Copied").wait_for()

    assert page.evaluate("navigator.clipboard.readText()").startswith("loader:")


def test_printing_opens_what_is_folded_and_closes_it_again(shared: Any) -> None:
    page = shared(runs.typical)
    folded = page.locator("details:not([open])").count()
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    opened = page.locator("details:not([open])").count()
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")

    assert (opened, page.locator("details:not([open])").count()) == (0, folded)


def test_everything_that_acts_is_reached_by_the_keyboard_and_shows_its_focus(shared: Any) -> None:
    page = shared(runs.typical)
    reached = set()
    for _ in range(80):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate(
                "(() => { const a = document.activeElement; return a.id || a.name || a.className || a.tagName; })()"
            )
        )
        shown = page.evaluate(
            "(() => { const a = document.activeElement; if (a === document.body) return true;"
            " const s = getComputedStyle(a), l = a.closest('label');"
            " return s.outlineStyle !== 'none' || (l && getComputedStyle(l).outlineStyle !== 'none'); })()"
        )
        assert shown

    assert {"theme", "pick-0", "timeline-trial", "SUMMARY", "A"} <= reached


def test_a_place_without_a_key_figure_has_the_color_of_the_page(shared: Any) -> None:
    page = shared(runs.typical, 400, 740)

    assert page.evaluate("getComputedStyle(document.querySelector('.tiles')).backgroundColor") == "rgba(0, 0, 0, 0)"


def edge(page: Any) -> tuple[int, int, int]:
    """The color in the middle of the right edge of the table of trials, between two of its lines."""
    import io

    from PIL import Image

    box = page.locator("#trials .scroll")
    image = Image.open(io.BytesIO(box.screenshot())).convert("RGB")
    red, green, blue = image.getpixel((image.width - 2, 3))
    return red, green, blue


def test_a_table_wider_than_the_page_is_shaded_where_it_goes_on(shared: Any) -> None:
    page = shared(runs.gpu_run, 900, 740)
    before = edge(page)
    page.evaluate("(() => { const b = document.querySelector('#trials .scroll'); b.scrollLeft = b.scrollWidth; })()")

    assert max(before) < 235
    assert edge(page) == (255, 255, 255)


def test_a_table_that_fits_has_no_shade(shared: Any) -> None:
    page = shared(runs.all_failed, 1200, 740)

    assert edge(page) == (255, 255, 255)


def test_the_name_of_the_demand_stands_above_its_line_clear_of_the_points(shared: Any) -> None:
    page = shared(runs.typical, 1200, 900)
    name = page.locator("[data-figure=scaling] .annotation").bounding_box()
    line = page.locator("[data-figure=scaling] .shapelayer path").bounding_box()
    bars = page.locator("[data-figure=scaling] .errorbar")
    boxes = [bars.nth(i).bounding_box() for i in range(bars.count())]

    assert name["y"] + name["height"] <= line["y"] + line["height"] / 2 + 1
    assert name["x"] - line["x"] < 12
    assert not [
        b
        for b in boxes
        if b["x"] < name["x"] + name["width"]
        and b["y"] < name["y"] + name["height"]
        and b["y"] + b["height"] > name["y"]
    ]


@pytest.mark.parametrize("width", [320, 360, 400, 480])
def test_an_interval_of_the_headline_stands_on_one_line(shared: Any, width: int) -> None:
    page = shared(runs.typical, width, 740)
    lines = page.evaluate(
        "(() => { const node = document.querySelector('.headline bdi').firstChild, text = node.data;"
        " const from = text.search(/[(]\\d/), range = document.createRange();"
        " range.setStart(node, from); range.setEnd(node, text.indexOf(')', from) + 1);"
        " return new Set(Array.from(range.getClientRects(), (r) => Math.round(r.top))).size; })()"
    )

    assert lines == 1
