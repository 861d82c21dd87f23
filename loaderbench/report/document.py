"""Decides every word and number of a report. What it returns is only drawn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from loaderbench.records import Readings, RunRecord, TimelinePoint
from loaderbench.report import (
    cards,
    choices,
    closing,
    downloads,
    failures,
    glance,
    header,
    heat,
    inside,
    ladder,
    profile,
    ranking,
    scaling,
    trials,
    verdict,
    words,
)
from loaderbench.report.cost import cost
from loaderbench.report.noise import noise_charts
from loaderbench.report.parts import Link, Text
from loaderbench.report.timeline import timeline as timeline_part
from loaderbench.report.tree import ReportDocument
from loaderbench.report.tried import tried

NO_NAME = "(no name)"


def build_document(run: RunRecord, timeline: Iterable[TimelinePoint] = ()) -> ReportDocument:
    """The whole report of a run; `timeline` are the readings of its monitors, where they were kept.

    Here alone it is decided which parts a sweep has and which a profile.
    """
    read = timeline if isinstance(timeline, Readings) else Readings(timeline)
    document = _of_profile(run, read) if run.kind == "profile" else _of_sweep(run, read)
    return replace(document, sections=_sections(document))


def _of_sweep(run: RunRecord, timeline: Readings) -> ReportDocument:
    anchors = trials.anchors(run)
    found = choices.choices(run, anchors)
    choosable = choices.numbered(found)
    shown = choices.first_shown(run, found)
    return ReportDocument(
        name=words.name(run.name.strip() or NO_NAME),
        page_title=_page_title(run),
        state=header.state(run),
        facts=header.facts(run),
        warnings=header.warnings(run),
        notes=header.notes(run),
        sections=(),
        verdict=verdict.verdict(run),
        recommendations=cards.recommendations(run, anchors),
        tried=tried(run),
        sweep=heat.sweep(run, anchors, choosable),
        sweep_hint=heat.ONE_CONFIGURATION if len(run.configurations) == 1 else None,
        ranking=ranking.ranking(run, choosable),
        scaling=scaling.scaling(run),
        choices=found if choosable else (),
        shown=shown,
        inside=shown.inside if shown else None,
        apart=ladder.apart(run),
        apart_glance=ladder.apart_in_short(run),
        cost=cost(run),
        timeline=timeline_part(run, timeline, choosable),
        noise_title="Noise and overhead",
        noise=closing.noise(run),
        noise_charts=noise_charts(run, timeline),
        failures=failures.failures(run, anchors),
        trials_title="All trials",
        trials=trials.trials(run),
        readings=(),
        environment=header.environment(run),
        method=closing.method(run),
        glossary=closing.GLOSSARY,
        downloads=downloads.downloads(run),
        downloads_note=downloads.downloads_note(run),
        made_by=_made_by(run),
        glance=(),
    )


def _of_profile(run: RunRecord, timeline: Readings) -> ReportDocument:
    trial = profile.trial_of(run)
    measured = inside.of_trial(trial) if trial.status == "completed" else None
    own_cost = profile.cost(run) if measured else ()
    return ReportDocument(
        name=words.name(run.name.strip() or NO_NAME),
        page_title=_page_title(run),
        state=profile.state(run),
        facts=profile.facts(run),
        warnings=header.warnings(run),
        notes=header.notes(run),
        sections=(),
        verdict=profile.verdict(run),
        recommendations=cards.recommendations(run, {}) if run.recommendations else None,
        sweep=None,
        sweep_hint=None,
        ranking=None,
        scaling=None,
        inside=measured,
        apart=(),
        apart_glance=(),
        timeline=timeline_part(run, timeline, since="the steady state began"),
        noise_title="Cost of measuring",
        noise=own_cost,
        failures=failures.failures(run, {}),
        trials_title="All readings" if measured else "What was recorded",
        trials=None,
        readings=trials.readings(trial) if measured else (),
        environment=header.environment(run),
        method=profile.method(run),
        glossary=profile.GLOSSARY,
        downloads=downloads.downloads(run),
        downloads_note=downloads.downloads_note(run),
        made_by=_made_by(run),
        glance=glance.glance(trial, measured, own_cost) if measured else (),
    )


def _sections(document: ReportDocument) -> tuple[Link, ...]:
    """The way to each section that there is."""
    found = document.inside
    sections = (
        ("verdict", "Verdict", True),
        ("recommendations", "Recommendations", document.recommendations),
        ("sweep", "Sweep", document.sweep),
        ("scaling", "Scaling", document.scaling),
        ("inside", "Step", found and (found.step or found.sample)),
        ("workers", "Workers", found and found.workers),
        ("waits", "Waits", found and found.waits),
        ("slow", "Slow samples", found and found.slow),
        ("apart", "Parts", document.apart),
        ("cost", "Cost", document.cost),
        ("timeline", "Timeline", document.timeline),
        ("noise", document.noise_title.split()[0], document.noise or document.noise_charts),
        ("failures", "Failures", document.failures),
        ("trials", document.trials_title.split()[-1].capitalize(), True),
    )
    return tuple(Link(Text(label), anchor) for anchor, label, there in sections if there)


def _page_title(run: RunRecord) -> str:
    return f"{words.plain(run.name.strip() or NO_NAME, words.NAME_LIMIT)} \u2013 loaderbench"


def _made_by(run: RunRecord) -> str:
    return words.plain(f"loaderbench {run.loaderbench_version}", words.NAME_LIMIT)
