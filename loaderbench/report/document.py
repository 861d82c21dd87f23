"""Decides every word and number of a report. What it returns is only drawn."""

from __future__ import annotations

from collections.abc import Sequence

from loaderbench.records import RunRecord, TimelinePoint
from loaderbench.report import cards, closing, failures, header, heat, ranking, scaling, trials, verdict, words
from loaderbench.report.parts import ReportDocument
from loaderbench.report.timeline import timeline as timeline_part


def build_document(run: RunRecord, timeline: Sequence[TimelinePoint] = ()) -> ReportDocument:
    """The whole report of a run; `timeline` are the readings of its monitors, where they were kept."""
    anchors = trials.anchors(run)
    sweep = heat.sweep(run, anchors)
    return ReportDocument(
        name=words.name(run.name),
        page_title=f"{words.plain(run.name, words.NAME_LIMIT)} \u2013 loaderbench",
        state=header.state(run),
        facts=header.facts(run),
        warnings=header.warnings(run),
        notes=header.notes(run),
        verdict=verdict.verdict(run),
        recommendations=cards.recommendations(run, anchors),
        sweep=sweep,
        sweep_hint=heat.ONE_CONFIGURATION if len(run.configurations) == 1 else None,
        ranking=ranking.ranking(run),
        scaling=scaling.scaling(run),
        timeline=timeline_part(run, timeline),
        noise=closing.noise(run),
        failures=failures.failures(run, anchors),
        trials=trials.trials(run),
        environment=header.environment(run),
        method=closing.method(run),
        glossary=closing.GLOSSARY,
        downloads=closing.downloads(run),
        made_by=words.plain(f"loaderbench {run.loaderbench_version}", words.NAME_LIMIT),
    )
