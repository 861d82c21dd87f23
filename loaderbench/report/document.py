"""The complete report of a run: its head, and every section with content."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from loaderbench.records import Readings, RunRecord, TimelinePoint
from loaderbench.report import head, words
from loaderbench.report.model import Document
from loaderbench.report.sections import sections
from loaderbench.report.view import View

NO_NAME = "(unnamed)"


def build_document(run: RunRecord, timeline: Iterable[TimelinePoint] = (), folder: Path | None = None) -> Document:
    """Build the report of a run. `timeline` has the readings of its monitors, if they were saved in its `folder`."""
    view = View(run, timeline if isinstance(timeline, Readings) else Readings(timeline), folder)
    name = run.name.strip() or NO_NAME
    return Document(
        name=words.name(name),
        page_title=f"{words.plain(name, words.NAME_LIMIT)} \u2013 loaderbench",
        state=head.state(view),
        facts=head.facts(view),
        sections=sections(view),
        made_by=words.plain(f"loaderbench {run.loaderbench_version}", words.NAME_LIMIT),
    )
