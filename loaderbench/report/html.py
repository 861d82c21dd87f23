"""The page: one file that opens from disk, asks for nothing, and can be read with scripts blocked."""

from __future__ import annotations

import functools
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from loaderbench.report import bundle, charts, colours
from loaderbench.report.parts import ReportDocument

_TEMPLATES = Path(__file__).parent / "templates"
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)


def render_html(document: ReportDocument) -> str:
    """The whole page as text, to be written as UTF-8."""
    figures = charts.figures(document)
    return _environment().get_template("page.html").render(
        document=document,
        csp=CONTENT_SECURITY_POLICY,
        css=_asset("page.css"),
        script=_asset("page.js"),
        figures=bundle.pack_json(figures) if figures else None,
        settings=Markup(bundle.inline_json({"plotly": charts.CONFIG})),
        plotly=bundle.plotly_packed() if figures else None,
        downloads=bundle.pack_json([download.content for download in document.downloads]),
        gradient=colours.gradient(),
    )  # fmt: skip


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["cell_style"] = colours.cell_style
    return environment


@functools.cache
def _asset(name: str) -> Markup:
    """A file of ours, placed as it is."""
    return Markup((_TEMPLATES / name).read_text(encoding="utf-8"))
