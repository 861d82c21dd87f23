"""Failed trials, grouped by cause, each with a hint on what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loaderbench.diagnosis.failures import last_words, what_fits
from loaderbench.records import RunRecord, Trial
from loaderbench.report import numbers, words
from loaderbench.report.model import Block, Link, Section, Text
from loaderbench.report.rerun_command import command_for_configuration
from loaderbench.report.view import View

_MOST_LOGS = 5
_STATUS_HINTS = {
    "failed": "No cause recorded; see the trial\u2019s log.",
    "timed_out": "The trial timed out; all its processes were ended.",
    "unavailable": "This machine lacks something the trial needs.",
}


@dataclass(frozen=True, kw_only=True)
class FailureGroup:
    """All trials that failed for one cause. `last_words`, `message`, `log` and `command` are those of one of them."""

    kind: Text
    count: str
    last_words: Text
    hint: Text
    log: Text | None
    message: Text
    logs: tuple[Text, ...]
    trials: tuple[Link, ...]
    command: str | None


@dataclass(frozen=True)
class Failures(Block):
    """One group for each kind, the most frequent first."""

    template = "failures.html"
    groups: tuple[FailureGroup, ...]


def section(view: View) -> Section | None:
    """What ended trials, and what to do."""
    groups: dict[str, list[Trial]] = {}
    for trial in view.run.sweep:
        if trial.status != "completed":
            groups.setdefault(trial.failure.kind if trial.failure else trial.status, []).append(trial)
    if not groups:
        return None
    ranked = sorted(groups.items(), key=lambda group: -len(group[1]))
    block = Failures(tuple(_group(view, kind, trials) for kind, trials in ranked))
    return Section(id="failures", title="Failed trials", label="Failures", blocks=(block,))


def _largest_batch(run: RunRecord, kind: str) -> str:
    """The batch that fits in GPU memory by the line through smaller ones, for a failure by that memory."""
    if kind != "device_memory" or run.gpu_memory is None or run.gpu_memory.largest_batch is None:
        return ""
    return f"About batch_size={run.gpu_memory.largest_batch:,} fits in GPU memory (predicted from smaller batches)"


def _group(view: View, kind: str, trials: Sequence[Trial]) -> FailureGroup:
    fits = what_fits(trials[0], [*view.run.sweep, *view.run.remedy_trials])
    failed = next((trial for trial in reversed(trials) if trial.failure), trials[-1])
    failure = failed.failure
    message = words.message_end(failure.message) if failure else Text("")
    last = words.sentence(last_words(failure.message)) if failure else Text("")
    logs = [trial.log for trial in trials if trial.log]
    shown = [words.outside(log, words.LABEL_LIMIT) for log in logs[:_MOST_LOGS]]
    if len(logs) > _MOST_LOGS:
        shown.append(Text(f"and {len(logs) - _MOST_LOGS} more"))
    hint = failure.hint if failure and failure.hint else _STATUS_HINTS.get(trials[0].status, "")
    fits = ". ".join(filter(None, (fits, _largest_batch(view.run, kind))))
    return FailureGroup(
        kind=words.name(kind.replace("_", " ")),
        count=numbers.count(len(trials), "trial"),
        last_words=last,
        hint=words.sentence(f"{fits}. {hint[:1].upper()}{hint[1:]}" if fits else hint),
        log=words.outside(failed.log, words.LABEL_LIMIT) if failed.log else None,
        message=message if message.text != last.text else Text(""),
        logs=tuple(shown),
        trials=tuple(
            Link(words.name(trial.id), view.anchors[trial.id]) for trial in trials if trial.id in view.anchors
        ),
        command=command_for_configuration(view.run, trials[0].config),
    )
