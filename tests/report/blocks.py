"""What a document shows, by the kind of its blocks."""

from types import SimpleNamespace
from typing import TypeVar

from loaderbench.records import RunRecord
from loaderbench.report.document import build_document
from loaderbench.report.model import (
    Block,
    Breakdown,
    Chart,
    Details,
    Document,
    Fact,
    Facts,
    Glance,
    Section,
    Table,
    walk,
)
from loaderbench.report.sections.failures import FailureGroup, Failures
from loaderbench.report.sections.heat_map import HeatMap
from loaderbench.report.sections.recommendations import Card, Cards
from loaderbench.report.sections.sweep import Ranking
from loaderbench.report.sections.trials import Download, Downloads
from loaderbench.report.sections.verdict import KeyFigure, KeyFigures

B = TypeVar("B", bound=Block)


def the(run: RunRecord | Document, kind: type[B], points: object = ()) -> B:
    """The one block of a kind."""
    document = run if isinstance(run, Document) else build_document(run, points)  # type: ignore[arg-type]
    found = document.find(kind)
    assert found is not None, f"no {kind.__name__} in the report"
    return found


def section(document: Document, name: str) -> Section | None:
    found = next((one for one in document.sections if one.id == name), None)
    return found if found and found.blocks else None


def within(document: Document, name: str, kind: type[B]) -> list[B]:
    """The blocks of a kind in one section."""
    found = section(document, name)
    return [block for block in walk(found.blocks) if isinstance(block, kind)] if found else []


def ids(document: Document) -> list[str]:
    return [one.id for one in document.sections if one.blocks]


def parts(sections: tuple[Section, ...]) -> dict[str, Breakdown]:
    """What tells of one trial: `step` and `sample`, `workers`, `waits`, `slow`."""
    found: dict[str, Breakdown] = {}
    for one in sections:
        own = [block for block in walk(one.blocks) if isinstance(block, Breakdown)]
        if one.id == "inside":
            found |= {"step" if part.title == "Step time" else "sample": part for part in own}
        elif own:
            found[one.id] = own[0]
    return found


def cards(document: Document) -> tuple[Card, ...]:
    return the(document, Cards).cards


def folded(document: Document, summary: str) -> list[Fact]:
    """The facts behind a line that unfolds them."""
    found = [fold for fold in document.all(Details) if fold.summary == summary]
    return [fact for fold in found for block in fold.blocks if isinstance(block, Facts) for fact in block.facts]


def failures(document: Document) -> tuple[FailureGroup, ...]:
    found = document.find(Failures)
    return found.groups if found else ()


def figures(document: Document) -> tuple[KeyFigure, ...]:
    found = document.find(KeyFigures)
    return found.figures if found else ()


def downloads(document: Document) -> tuple[Download, ...]:
    return the(document, Downloads).files


def trials(document: Document) -> Table:
    return within(document, "trials", Table)[0]


def facts(document: Document, name: str) -> list[Fact]:
    return [fact for block in within(document, name, Facts) for fact in block.facts]


def ranking(document: Document) -> Ranking | None:
    return next((block for one in document.sections for block in one.glance if isinstance(block, Ranking)), None)


def heat_map(document: Document) -> HeatMap | None:
    return document.find(HeatMap)


def glance(document: Document, name: str) -> tuple[Glance, ...]:
    return next((one.glance for one in document.sections if one.id == name), ())


def chart(run: RunRecord | Document, name: str, points: object = ()) -> Chart | None:
    document = run if isinstance(run, Document) else build_document(run, points)  # type: ignore[arg-type]
    return next((found for found in document.all(Chart) if found.name == name), None)


def drawn(run: RunRecord | Document, name: str, points: object = ()) -> SimpleNamespace:
    """The first figure of a chart: its caption, its traces, and its layout in light colors."""
    found = chart(run, name, points)
    assert found is not None, f"no chart {name} in the report"
    figure = found.figures[0]
    return SimpleNamespace(caption=found.caption, traces=figure["data"], layout=figure["layout"]["light"])
