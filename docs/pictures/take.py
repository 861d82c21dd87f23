"""Takes the pictures of the README from the committed example: pipeline, head and charts of the report, light and dark.

    uv run python docs/pictures/take.py

Needs Chromium; LOADERBENCH_CHROMIUM names it where it is not on the path.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from loaderbench.result import load_concluded

HERE = Path(__file__).parent
EXAMPLE = HERE.parents[1] / "reports" / "examples" / "two-cores"
COLORS = 160  # of a picture: enough for flat paper, ink and the scale of the heat map


def main() -> int:
    """Draw the page and write a picture for each part and theme."""
    names = ("chromium", "chromium-browser", "google-chrome")
    path = os.environ.get("LOADERBENCH_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if path is None:
        print("no Chromium was found: set LOADERBENCH_CHROMIUM", file=sys.stderr)
        return 5
    with TemporaryDirectory() as place, sync_playwright() as playwright:
        page = Path(place) / "report.html"
        load_concluded(EXAMPLE).to_html(page)
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for theme in ("light", "dark"):
            take(browser, page, theme)
        browser.close()
    return 0


def take(browser: Browser, page: Path, theme: str) -> None:
    """The head of the report, its pipeline, and the section with the heat map."""
    view = browser.new_page(viewport={"width": 1120, "height": 1400}, color_scheme=theme)
    view.goto(page.as_uri())
    view.wait_for_selector("html.drawn", state="attached")
    write(view.screenshot(), f"report-{theme}.png")
    write(view.locator("#pipeline").screenshot(), f"pipeline-{theme}.png")
    top = view.locator("#sweep").bounding_box()["y"]
    view.set_viewport_size({"width": 1120, "height": 1200})
    view.evaluate("top => window.scrollTo(0, top - 24)", top)
    view.wait_for_timeout(300)
    write(view.screenshot(), f"charts-{theme}.png")
    view.close()


def write(png: bytes, name: str) -> None:
    """A picture with few colors is a fifth of the size and looks the same."""
    image = Image.open(io.BytesIO(png)).convert("RGB").quantize(COLORS, dither=Image.Dither.NONE)
    image.save(HERE / name, optimize=True)
    print(f"{name}: {(HERE / name).stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    sys.exit(main())
