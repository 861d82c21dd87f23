"""The HTML report: one file that opens from disk, loads nothing, and is readable with scripts blocked.

A notebook shows a short version below a cell.
"""

from __future__ import annotations

import base64
import functools
import gzip
import importlib.resources
import json
import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from loaderbench.report import style
from loaderbench.report.model import Block, Chart, Document, Json, Section
from loaderbench.report.sections.failures import Failures
from loaderbench.report.sections.heat_map import HeatMap
from loaderbench.report.sections.recommendations import Cards
from loaderbench.report.sections.trials import Downloads
from loaderbench.report.sections.verdict import VerdictBlock

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)
CONFIG: Json = {"displayModeBar": False, "displaylogo": False, "showSendToCloud": False, "responsive": True}

_TEMPLATES = Path(__file__).parent / "templates"
_WORD_JOINER = "\u2060"
_DASH = re.compile(r"(?<=\d)\u2013(?=\d)")
_DURATION = re.compile(r"(\d+) (h|min) (\d+) (min|s)\b")
_PLOTLY = "package_data/plotly.min.js"
_UNSAFE = re.compile("[<>&\u2028\u2029\ud800-\udfff]")
_LEVEL = 7  # higher levels save 0.1% and take twice as long
_MOST_ROWS, _MOST_CARDS = 12, 3  # shown in a notebook; the report has all


def render_html(document: Document) -> str:
    """Render the complete report as text that can be encoded as UTF-8."""
    drawn = {chart.name: chart.figures for chart in document.all(Chart)}
    choices = _choices(document)
    return utf8("page.html",
        document=document,
        parts=[(of_choice, list(found)) for of_choice, found in groupby(document.sections, lambda s: s.of_choice)],
        csp=CONTENT_SECURITY_POLICY,
        css=asset("page.css"),
        script=asset("page.js"),
        figures=pack_json(drawn) if drawn else None,
        choices=pack_json(choices) if choices else None,
        settings=Markup(inline_json({"plotly": CONFIG})),
        plotly=_plotly_packed() if drawn else None,
        downloads=pack_json([file.content for block in document.all(Downloads) for file in block.files]),
    )  # fmt: skip


def notebook_html(document: Document) -> str:
    """Render what a notebook shows below a cell: the verdict and its tables, without scripts and with fixed colors.

    Every string is escaped. Styles are inline, because some notebooks drop all others.
    """
    cards, failures = document.find(Cards), document.find(Failures)
    return environment().get_template("notebook.html").render(
        document=document,
        finding=document.find(VerdictBlock),
        glance=[block for section in document.sections if section.in_markdown for block in section.glance],
        most_rows=_MOST_ROWS,
        advice=cards.cards[:_MOST_CARDS] if cards else (),
        failures=failures.groups if failures else (),
    )  # fmt: skip


def utf8(template: str, **values: Any) -> str:
    """Render a template as text that can be encoded as UTF-8."""
    return environment().get_template(template).render(values).encode("utf-8", "replace").decode("utf-8")


def _choices(document: Document) -> dict[str, list[str]]:
    """HTML for each selectable configuration, by number: its head and its inside."""
    heat_map = document.find(HeatMap)
    head, inside = (environment().get_template(name) for name in ("choice.html", "sections.html"))
    return {
        str(choice.number): [head.render(choice=choice), inside.render(sections=choice.inside)]
        for choice in (heat_map.choices if heat_map else ())
    }


def unbroken(text: str) -> str:
    """The text without line breaks next to the dash of an interval or within a duration."""
    text = _DURATION.sub("\\1\u00a0\\2\u00a0\\3\u00a0\\4", text)
    return _DASH.sub(f"{_WORD_JOINER}\u2013{_WORD_JOINER}", text)


def drawn(block: Block) -> Markup:
    """Render a block with its template: a file, or a macro."""
    if block.template.endswith(".html"):
        return Markup(environment().get_template(block.template).render(block=block))
    macro = getattr(environment().get_template("macros.html").module, block.template)
    return Markup(macro(block))


def narrow_together(sections: Iterable[Section]) -> list[tuple[bool, Sequence[Section]]]:
    """Sections with content, grouped into those that share a row."""
    return [(narrow, list(group)) for narrow, group in groupby((s for s in sections if s.blocks), lambda s: s.narrow)]


@functools.cache
def environment() -> Environment:
    """The template environment, with autoescaping."""
    templates = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {
        "unbroken": unbroken,
        "drawn": drawn,
        "narrow_together": narrow_together,
        "cell_style": style.cell_style,
    }
    templates.globals["gradient"] = style.gradient()
    return templates


@functools.cache
def asset(name: str) -> Markup:
    """A file of this package, inserted unchanged."""
    return Markup((_TEMPLATES / name).read_text(encoding="utf-8"))


@functools.cache
def _plotly_packed() -> str:
    """The Plotly bundle, packed: 4.8 MB of script become 2.0 MB of HTML. Computed once per process."""
    return pack((importlib.resources.files("plotly") / _PLOTLY).read_bytes())


def pack(content: bytes) -> str:
    """Compress with gzip, without a time stamp, and encode as base64. Equal runs yield equal files."""
    return base64.b64encode(gzip.compress(content, _LEVEL, mtime=0)).decode("ascii")


def pack_json(value: Any) -> str:
    """A value as packed JSON."""
    return pack(json.dumps(value, allow_nan=False, separators=(",", ":")).encode())


def inline_json(value: Any) -> str:
    """JSON that is safe inside a `<script>` element: it cannot end the element or a script line, and is valid UTF-8."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
