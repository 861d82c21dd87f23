"""The list of runs as a page: one file that opens from disk, asks for nothing, and has no script."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup

from loaderbench.report import sparkline
from loaderbench.report.html import environment
from loaderbench.report.index import LIST_OF_RUNS, IndexDocument

_TEMPLATES = Path(__file__).parent / "templates"
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
)


def render_index(document: IndexDocument) -> str:
    """The whole page as text that UTF-8 can hold."""
    page = environment().get_template("index.html").render(
        document=document,
        csp=CONTENT_SECURITY_POLICY,
        css=Markup("").join(Markup((_TEMPLATES / name).read_text("utf-8")) for name in ("page.css", "index.css")),
        generator=f"{document.made_by}, {LIST_OF_RUNS}",
        width=sparkline.WIDTH,
        height=sparkline.HEIGHT,
    )  # fmt: skip
    return page.encode("utf-8", "replace").decode("utf-8")
