"""The list of runs in a folder: its content, its HTML, and its file, which is kept up to date."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from urllib.parse import quote

from markupsafe import Markup

from loaderbench.errors import printable
from loaderbench.new_files import write_whole
from loaderbench.records.words import count
from loaderbench.report import numbers, sparkline, words
from loaderbench.report.document import NO_NAME
from loaderbench.report.head import outcome
from loaderbench.report.html import asset, utf8
from loaderbench.report.model import State, Text, Value
from loaderbench.report.sparkline import Sparkline
from loaderbench.store.run_list import DEFAULT_FOLDER, RunList, RunSummary, UnreadableRun, list_runs

INDEX_FILE = "index.html"
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
)
_LIST_OF_RUNS = "list of runs"
_HEAD_BYTES = 4_096
_OURS = re.compile(rf'<meta name="generator" content="loaderbench [^"<>]*, {_LIST_OF_RUNS}">'.encode())
_LOG = logging.getLogger("loaderbench")
_HEADLINE_LIMIT = 140  # characters of a verdict in a table; its title has all of it
_MOST_NAVIGATION = 12


@dataclass(frozen=True, kw_only=True)
class RunRow:
    """One run. `href` links to its report, relative to the list's folder; `None` if there is no report."""

    when: str
    folder: Text
    href: str | None
    headline: Text
    best: Text | None
    rate: Value
    state: State


@dataclass(frozen=True, kw_only=True)
class SuitePart:
    """The runs of one suite, newest first. `latest` is shown above the table with its complete verdict."""

    anchor: str
    name: Text
    kind: str | None
    count: str
    latest: RunRow
    verdict: Text
    sparkline: Sparkline | None
    rows: tuple[RunRow, ...]


@dataclass(frozen=True, kw_only=True)
class UnreadRow:
    """A run that cannot be shown, and why."""

    folder: Text
    href: str | None
    reason: Text


@dataclass(frozen=True, kw_only=True)
class IndexDocument:
    """The list of the runs in a folder, ready to be drawn. `note` gives the number of runs that are not listed."""

    title: str
    summary: str
    note: str | None
    empty: str | None
    suites: tuple[SuitePart, ...]
    navigation: tuple[SuitePart, ...]
    unread: tuple[UnreadRow, ...]
    made_by: str


def build_index(run_list: RunList, own_version: str) -> IndexDocument:
    """Build the list of all runs by suite, the suite with the newest run first. `own_version` is loaderbench's."""
    suites = _suites(run_list.runs)
    return IndexDocument(
        title="Runs \u2013 loaderbench",
        summary=_summary(run_list, len(suites)),
        note=_note(run_list),
        empty=None if run_list.runs or run_list.unreadable else "No runs in this folder.",
        suites=suites,
        navigation=suites[:_MOST_NAVIGATION] if len(suites) > 1 else (),
        unread=tuple(map(_unread, run_list.unreadable)),
        made_by=words.plain(f"loaderbench {own_version}", words.NAME_LIMIT),
    )


def _suites(runs: Sequence[RunSummary]) -> tuple[SuitePart, ...]:
    """Runs grouped by name and kind: a profile and a sweep with the same name are separate."""
    groups: dict[tuple[str, str], list[RunSummary]] = {}
    for run in runs:
        groups.setdefault((run.name, run.kind), []).append(run)
    return tuple(_suite(number, group) for number, group in enumerate(groups.values(), 1))


def _suite(number: int, runs: Sequence[RunSummary]) -> SuitePart:
    rows = tuple(map(_row, runs))
    return SuitePart(
        anchor=f"suite-{number}",
        name=words.name(runs[0].name or NO_NAME),
        kind=None if runs[0].kind == "sweep" else runs[0].kind,
        count=count(len(runs), "run"),
        latest=rows[0],
        verdict=words.sentence(runs[0].headline),
        sparkline=sparkline.sparkline([run.samples_per_s for run in reversed(runs)]),
        rows=rows,
    )


def _row(run: RunSummary) -> RunRow:
    whole = words.configuration(run.config) if run.config is not None else None
    shown = words.configuration(run.own_config or {}) if whole else None
    return RunRow(
        when=f"{run.started:%Y-%m-%d %H:%M} UTC" if run.started else "no date",
        folder=_folder(run.folder),
        href=_href(run.folder, run.has_page),
        headline=words.outside(run.headline, _HEADLINE_LIMIT),
        best=Text(shown.text, whole.title or whole.text) if shown and whole else None,
        rate=_rate(run),
        state=_state(run),
    )


def _rate(run: RunSummary) -> Value:
    """The rate with its interval. A profile is always one process, so `n = 1` is omitted."""
    value = numbers.interval(run.samples_per_s, run.reason)
    alone = run.kind == "profile" and value.detail == numbers.ONE_ROUND
    return replace(value, text=value.main, detail="") if alone else value


def _state(run: RunSummary) -> State:
    """The state in one word, with a hint that explains it."""
    done = f"{run.measured:,} of {count(run.tried, 'config')} measured"
    tone, word = outcome(run.complete, run.tried, run.measured)
    return State(tone, word, done if run.tried else "no trials ran")


def _folder(name: str) -> Text:
    return words.outside(name, words.NAME_LIMIT)


def _href(folder: str, has_page: bool) -> str | None:
    """The link to a report. All characters of the folder's name are quoted that could begin a URL scheme."""
    return f"{quote(os.fsencode(folder), safe='')}/report.html" if has_page else None


def _unread(run: UnreadableRun) -> UnreadRow:
    return UnreadRow(
        folder=_folder(run.folder), href=_href(run.folder, run.has_page), reason=words.sentence(run.reason)
    )


def _summary(run_list: RunList, suites: int) -> str:
    runs = count(len(run_list.runs), "run")
    return f"{runs} of {count(suites, 'suite')}, newest first" if run_list.runs else "No readable runs"


def _note(run_list: RunList) -> str | None:
    """The number of runs that are not listed."""
    if not run_list.left_out:
        return None
    shown = len(run_list.runs) + len(run_list.unreadable)
    return f"Showing the newest {shown:,}; {count(run_list.left_out, 'older run')} not listed."


def render_index(document: IndexDocument) -> str:
    """Render the list as HTML without scripts, as text that can be encoded as UTF-8."""
    return utf8("index.html",
        document=document,
        csp=CONTENT_SECURITY_POLICY,
        css=Markup("").join(map(asset, ("page.css", "index.css"))),
        generator=f"{document.made_by}, {_LIST_OF_RUNS}",
        width=sparkline.WIDTH,
        height=sparkline.HEIGHT,
    )  # fmt: skip


def update_index(run_folder: Path) -> Path | None:
    """Rewrite the list of runs in the parent folder, if it has a list or is the default folder of runs.

    Returns `None` if nothing was written. A write error is logged and not raised, because the run itself is saved.
    """
    parent = run_folder.resolve().parent
    try:
        if not _may_write(parent):
            return None
        text = render_index(build_index(list_runs(parent), version("loaderbench")))
        write_whole(parent / INDEX_FILE, text, shared=True)  # two runs can end at the same time
        return parent / INDEX_FILE
    except Exception as error:  # a failed list must not end a run that took hours
        reason = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
        _LOG.warning("%s", printable(f"loaderbench: {parent / INDEX_FILE}: was not written: {reason}"))
        return None


def _may_write(parent: Path) -> bool:
    """Whether the list may be written: over an existing list of loaderbench, or as a new file in the default folder."""
    file = parent / INDEX_FILE
    if not os.path.lexists(file):
        return parent == DEFAULT_FOLDER.resolve()
    return _is_list_of_runs(file)


def _is_list_of_runs(file: Path) -> bool:
    """Whether the file's head identifies it as a list of runs by loaderbench, not as a run's report."""
    if file.is_symlink() or not file.is_file():
        return False
    with file.open("rb") as opened:
        return _OURS.search(opened.read(_HEAD_BYTES)) is not None
