"""The page on paper: light, unfolded, with its charts."""

import io
from typing import Any

import pytest
import run_factory as runs
from PIL import Image

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_a_page_prints_light_and_whole_even_from_the_dark(visit: Any) -> None:
    page = visit(runs.typical(), color_scheme="dark").drawn()
    short = page.pdf()
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    shown = Image.open(io.BytesIO(page.screenshot())).convert("RGB")

    assert short.startswith(b"%PDF")
    assert short.count(b"/Type /Page\n") + short.count(b"/Type /Page ") > 2
    assert shown.getpixel((2, 2)) == (255, 255, 255)
    assert page.locator("details:not([open])").count() == 0
    assert page.locator("[data-figure=scaling] svg.main-svg").first.is_visible()
    assert page.locator("button:visible").count() == page.locator("th button:visible").count()


def test_without_scripts_what_is_folded_is_printed_too(visit: Any) -> None:
    page = visit(runs.typical(), java_script_enabled=False).page
    page.emulate_media(media="print")
    method = page.locator("#about details", has_text="Method").locator("p").first

    assert method.bounding_box()["height"] > 10


def test_two_announcements_of_one_printing_bring_back_the_colors_of_the_screen(visit: Any) -> None:
    page = visit(runs.typical(), color_scheme="dark").drawn()
    for event in ("beforeprint", "beforeprint", "afterprint"):
        page.evaluate(f"window.dispatchEvent(new Event('{event}'))")

    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(15, 19, 24)"
