"""Decides every word and number of the list of runs. What it returns is only drawn."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote

from loaderbench.report import numbers, words
from loaderbench.report.parts import State, Text, Value
from loaderbench.report.sparkline import Sparkline, sparkline
from loaderbench.run_list import RunList, RunSummary, UnreadableRun

LIST_OF_RUNS = "list of runs"
_HEADLINE_LIMIT = 140  # characters of a verdict in a table; the whole is in its title
_MOST_NAVIGATION = 12


@dataclass(frozen=True, kw_only=True)
class RunRow:
    """One run. `href` leads to its page from the folder of the list; `None` where it has none."""

    when: str
    folder: Text
    href: str | None
    headline: Text
    best: Text | None
    rate: Value
    state: State


@dataclass(frozen=True, kw_only=True)
class SuitePart:
    """The runs of one suite, the newest first; `latest` stands above the table with its whole verdict."""

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
    """The list of the runs of a folder, ready to be drawn. `note` says how many are not in it."""

    title: str
    summary: str
    note: str | None
    empty: str | None
    suites: tuple[SuitePart, ...]
    navigation: tuple[SuitePart, ...]
    unread: tuple[UnreadRow, ...]
    made_by: str


def build_index(found: RunList, version: str) -> IndexDocument:
    """The list of all runs by suite, the suite with the newest run first; `version` is that of loaderbench."""
    suites = _suites(found.runs)
    return IndexDocument(
        title="Runs \u2013 loaderbench",
        summary=_summary(found, len(suites)),
        note=_note(found),
        empty=None if found.runs or found.unreadable else "There is no run in this folder.",
        suites=suites,
        navigation=suites[:_MOST_NAVIGATION] if len(suites) > 1 else (),
        unread=tuple(map(_unread, found.unreadable)),
        made_by=words.plain(f"loaderbench {version}", words.NAME_LIMIT),
    )


def _suites(runs: Sequence[RunSummary]) -> tuple[SuitePart, ...]:
    """A profile and a sweep of one name are no runs of one thing."""
    groups: dict[tuple[str, str], list[RunSummary]] = {}
    for run in runs:
        groups.setdefault((run.name, run.kind), []).append(run)
    return tuple(_suite(number, group) for number, group in enumerate(groups.values(), 1))


def _suite(number: int, runs: Sequence[RunSummary]) -> SuitePart:
    rows = tuple(map(_row, runs))
    return SuitePart(
        anchor=f"suite-{number}",
        name=words.name(runs[0].name or "(no name)"),
        kind="profile" if runs[0].kind == "profile" else None,
        count=numbers.count(len(runs), "run"),
        latest=rows[0],
        verdict=words.sentence(runs[0].headline),
        sparkline=sparkline([run.samples_per_s for run in reversed(runs)]),
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
    """The rate with its interval; a profile is one process by nature, so that it does not say `n = 1`."""
    value = numbers.interval(run.samples_per_s, run.reason)
    alone = run.kind == "profile" and value.detail == numbers.ONE_ROUND
    return replace(value, text=value.main, detail="") if alone else value


def _state(run: RunSummary) -> State:
    """In one word, with what it means in its hint."""
    done = f"{run.measured:,} of {numbers.count(run.tried, 'configuration')} measured"
    if run.tried and not run.measured:
        return State("bad", "failed", "every trial failed")
    if not run.complete or not run.tried:
        return State("warn", "partial", done if run.tried else "no trial was run")
    return State("ok", "complete", done)


def _folder(name: str) -> Text:
    return words.outside(name, words.NAME_LIMIT)


def _href(folder: str, has_page: bool) -> str | None:
    """The way to a page, whatever signs the folder's name holds; none of them is left that could begin a scheme."""
    return f"{quote(os.fsencode(folder), safe='')}/report.html" if has_page else None


def _unread(run: UnreadableRun) -> UnreadRow:
    return UnreadRow(
        folder=_folder(run.folder), href=_href(run.folder, run.has_page), reason=words.sentence(run.reason)
    )


def _summary(found: RunList, suites: int) -> str:
    runs = numbers.count(len(found.runs), "run")
    return f"{runs} of {numbers.count(suites, 'suite')}, the newest first" if found.runs else "No run could be read"


def _note(found: RunList) -> str | None:
    """What is not shown."""
    if not found.left_out:
        return None
    shown = len(found.runs) + len(found.unreadable)
    return f"The newest {shown:,} runs are shown, without {numbers.count(found.left_out, 'older run')} of this folder."
