"""A section that is registered is drawn everywhere, by the kinds of its blocks alone."""

import io

import pytest
import run_factory as runs
from rich.console import Console

from loaderbench.records import RunRecord
from loaderbench.report import sections, style
from loaderbench.report.document import build_document
from loaderbench.report.html import notebook_html, render_html
from loaderbench.report.markdown import render_markdown
from loaderbench.report.model import (
    Breakdown,
    Chart,
    Column,
    Columns,
    Details,
    Document,
    Fact,
    Facts,
    Heading,
    Paragraph,
    Row,
    Section,
    Table,
    Text,
)
from loaderbench.report.terminal import print_summary
from loaderbench.report.view import View

TABLE = Table(
    "Phases of the moon", (Column("Phase"), Column("Days", numeric=True)), (Row((Text("waxing"), Text("7"))),)
)


def moon(view: View) -> Section | None:
    """Of a sweep, all kinds of blocks; of a profile nothing."""
    if view.profile:
        return None
    chart = Chart(name="moon", label="Light", caption="By night.", figures=(style.figure([], lambda _: {}, 100),))
    return Section(
        id="moon",
        title="The moon",
        label="Moon",
        blocks=(
            Paragraph(Text("It shines."), "small"),
            Columns(((Heading("Left"), Facts((Fact("Age", Text("old")),))), (chart,))),
            Breakdown(title="Face", lead=Text("What it is made of."), facts=(Fact("Rock", Text("most")),)),
            Details("Unfold", (TABLE,), 1),
        ),
        glance=(TABLE, Fact("Moon", Text("full"))),
        in_markdown=True,
    )


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sections, "SECTIONS", (*sections.SECTIONS, moon))


def printed(document: Document) -> str:
    out = io.StringIO()
    print_summary(document, Console(file=out, width=100))
    return out.getvalue()


def test_the_page_draws_every_kind_of_block_and_leads_to_the_section() -> None:
    html = render_html(build_document(runs.typical()))

    assert '<a href="#moon">Moon</a>' in html
    assert '<h2 id="moon-title">The moon</h2>' in html
    for said in ("It shines.", "<h3>Left</h3>", "old", 'data-figure="moon"', "What it is made of.", "Unfold", "waxing"):
        assert said in html


@pytest.mark.parametrize("draw", [printed, render_markdown, notebook_html])
def test_where_there_is_no_page_a_section_says_what_it_says_at_a_glance(draw: object) -> None:
    assert callable(draw)
    text = draw(build_document(runs.typical()))

    assert "Phases of the moon" in text
    assert "waxing" in text
    assert "full" in text
    assert "It shines." not in text


def test_a_section_with_nothing_to_say_leaves_no_trace() -> None:
    import run_profiles as profiles

    run: RunRecord = profiles.traced()
    assert "The moon" not in render_html(build_document(run))
    assert "Phases" not in printed(build_document(run))


def test_sections_have_places_of_their_own() -> None:
    for make in (runs.typical, runs.gpu_run, runs.partly_failed):
        ids = [section.id for section in build_document(make()).sections]
        assert len(ids) == len(set(ids))
