"""Trials that gave no measurement, grouped by cause: a failure is a result, and its hint is what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from loaderbench.diagnosis.failures import last_words, what_fits
from loaderbench.records import RunRecord, Trial
from loaderbench.report import numbers, words
from loaderbench.report.again import command_for_configuration
from loaderbench.report.parts import FailureGroup, Link, Text

_MOST_LOGS = 5
_STATUS_HINTS = {
    "failed": "No cause was recorded; the trial\u2019s log has what it wrote.",
    "timed_out": "The trial gave no answer in time and was ended with all its processes.",
    "unavailable": "Something the trial needs is not on this machine.",
}


def failures(run: RunRecord, anchors: Mapping[str, str]) -> tuple[FailureGroup, ...]:
    """One group for each kind, the most frequent first."""
    groups: dict[str, list[Trial]] = {}
    for trial in run.sweep:
        if trial.status != "completed":
            groups.setdefault(trial.failure.kind if trial.failure else trial.status, []).append(trial)
    ranked = sorted(groups.items(), key=lambda group: -len(group[1]))
    return tuple(
        replace(
            _group(kind, trials, anchors, what_fits(trials[0], run.sweep)),
            command=command_for_configuration(run, trials[0].config),
        )
        for kind, trials in ranked
    )


def _group(kind: str, trials: Sequence[Trial], anchors: Mapping[str, str], fits: str) -> FailureGroup:
    told = next((trial for trial in reversed(trials) if trial.failure), trials[-1])
    failure = told.failure
    message = words.message_end(failure.message) if failure else Text("")
    last = words.sentence(last_words(failure.message)) if failure else Text("")
    logs = [trial.log for trial in trials if trial.log]
    shown = [words.outside(log, words.LABEL_LIMIT) for log in logs[:_MOST_LOGS]]
    if len(logs) > _MOST_LOGS:
        shown.append(Text(f"and {len(logs) - _MOST_LOGS} more"))
    hint = failure.hint if failure and failure.hint else _STATUS_HINTS.get(trials[0].status, "")
    return FailureGroup(
        kind=words.name(kind.replace("_", " ")),
        count=numbers.count(len(trials), "trial"),
        last_words=last,
        hint=words.sentence(f"{fits}. {hint}" if fits else hint),
        log=words.outside(told.log, words.LABEL_LIMIT) if told.log else None,
        message=message if message.text != last.text else Text(""),
        logs=tuple(shown),
        trials=tuple(Link(words.name(trial.id), anchors[trial.id]) for trial in trials if trial.id in anchors),
    )
