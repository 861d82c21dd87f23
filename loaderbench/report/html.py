"""The page: one file that opens from disk, asks for nothing, and can be read with scripts blocked."""

from __future__ import annotations

import functools
import re
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from loaderbench.report import bundle, charts, colours
from loaderbench.report.tree import ReportDocument

_WORD_JOINER = "\u2060"
_PERCENT = re.compile(r"(?<=\d) %")
_DASH = re.compile(r"(?<=\d)\u2013(?=\d)")
_TEMPLATES = Path(__file__).parent / "templates"
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)


def render_html(document: ReportDocument) -> str:
    """The whole page as text that UTF-8 can hold."""
    figures = charts.figures(document)
    choices = _choices(document)
    page = environment().get_template("page.html").render(
        document=document,
        csp=CONTENT_SECURITY_POLICY,
        css=_asset("page.css"),
        script=_asset("page.js"),
        figures=bundle.pack_json(figures) if figures else None,
        choices=bundle.pack_json(choices) if choices else None,
        settings=Markup(bundle.inline_json({"plotly": charts.CONFIG})),
        plotly=bundle.plotly_packed() if figures else None,
        downloads=bundle.pack_json([download.content for download in document.downloads]),
        gradient=colours.gradient(),
    )  # fmt: skip
    return page.encode("utf-8", "replace").decode("utf-8")


def _choices(document: ReportDocument) -> dict[str, list[str]]:
    """What the page puts in place of what it shows, by the number of the choice: its head, and its inside."""
    head, inside = (environment().get_template(name) for name in ("choice.html", "inside.html"))
    return {
        str(choice.number): [head.render(choice=choice), inside.render(part=choice.inside) if choice.inside else ""]
        for choice in document.choices
    }


def unbroken(text: str) -> str:
    """The text with its numbers held together: no line ends before a `%` or beside the dash of an interval."""
    return _DASH.sub(f"{_WORD_JOINER}\u2013{_WORD_JOINER}", _PERCENT.sub("\u00a0%", text))


@functools.cache
def environment() -> Environment:
    """Where the templates are, with everything in them escaped."""
    found = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["unbroken"] = unbroken
    found.filters["cell_style"] = colours.cell_style
    return found


@functools.cache
def _asset(name: str) -> Markup:
    """A file of ours, placed as it is."""
    return Markup((_TEMPLATES / name).read_text(encoding="utf-8"))
