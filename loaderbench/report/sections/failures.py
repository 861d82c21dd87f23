"""Failed trials, grouped by cause, each group with a hint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loaderbench.diagnosis.failures import cause_of, last_words, what_fits
from loaderbench.records import RunRecord, Trial
from loaderbench.records.words import count
from loaderbench.report import words
from loaderbench.report.model import Block, Link, Section, Text
from loaderbench.report.rerun_command import command_for_configuration
from loaderbench.report.view import View

_MOST_LOGS = 5
_MOST_MESSAGES = 5
"""The most groups per kind of failure, because every trial can name another missing file."""

_SEVERAL = ", several messages"
_STATUS_HINTS = {
    "failed": "No cause recorded; see the trial\u2019s log.",
    "timed_out": "The trial timed out; all its processes were ended.",
    "unavailable": "This machine lacks something the trial needs.",
}


@dataclass(frozen=True, kw_only=True)
class FailureGroup:
    """All trials that failed for one cause. `last_words`, `message`, `log` and `command` are from one of them.

    The rarest causes of a kind share a group if there are many. A command measures the current code, so the earlier
    version of `ab` has none.
    """

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
    """One group for each cause, the most frequent first."""

    template = "failures.html"
    groups: tuple[FailureGroup, ...]


def section(view: View) -> Section | None:
    """Why trials failed, and hints."""
    kinds: dict[str, list[Trial]] = {}
    for trial in view.run.sweep_or_ab_trials:
        if trial.status != "completed":
            kinds.setdefault(trial.failure.kind if trial.failure else trial.status, []).append(trial)
    if not kinds:
        return None
    groups = [(kind, trials) for kind, of_kind in kinds.items() for trials in _groups(of_kind)]
    ranked = sorted(groups, key=lambda one: (len(_causes(one[1])) > 1, -len(one[1])))
    block = Failures(tuple(_group(view, kind, trials) for kind, trials in ranked))
    return Section(id="failures", title="Failed trials", label="Failures", blocks=(block,))


def _causes(trials: Sequence[Trial]) -> dict[str, list[Trial]]:
    """Failed trials of one kind, grouped by a text that trials with the same cause share."""
    causes: dict[str, list[Trial]] = {}
    for trial in trials:
        causes.setdefault(cause_of(trial.failure) if trial.failure else "", []).append(trial)
    return causes


def _groups(trials: Sequence[Trial]) -> list[list[Trial]]:
    """Failed trials of one kind: a group for each frequent cause, and one for all rarer causes."""
    ranked = sorted(_causes(trials).values(), key=len, reverse=True)
    rarer = [trial for of_cause in ranked[_MOST_MESSAGES:] for trial in of_cause]
    return [*ranked[:_MOST_MESSAGES], *([rarer] if rarer else [])]


def _largest_batch(run: RunRecord, kind: str) -> str:
    """For a failure by GPU memory: the batch size that fits, extrapolated from smaller batches."""
    if kind != "device_memory" or run.gpu_memory is None or run.gpu_memory.largest_batch is None:
        return ""
    return f"Estimated maximum: batch_size={run.gpu_memory.largest_batch:,} (extrapolated from smaller batches)"


def _group(view: View, kind: str, trials: Sequence[Trial]) -> FailureGroup:
    failed = trials[-1]
    failure = failed.failure
    of_side = [trial for trial in view.run.sweep_or_ab_trials if trial.side == failed.side]
    fits = what_fits(failed, [*of_side, *view.run.remedy_trials])
    message = words.message_end(failure.message) if failure else Text("")
    last = words.sentence(last_words(failure.message)) if failure else Text("")
    logs = [trial.log for trial in trials if trial.log]
    shown = [words.outside(log, words.LABEL_LIMIT) for log in logs[:_MOST_LOGS]]
    if len(logs) > _MOST_LOGS:
        shown.append(Text(f"and {len(logs) - _MOST_LOGS} more"))
    hint = failure.hint if failure and failure.hint else _STATUS_HINTS.get(failed.status, "")
    fits = ". ".join(filter(None, (fits, _largest_batch(view.run, kind))))
    return FailureGroup(
        kind=words.name(kind.replace("_", " ")),
        count=_counted(trials) + (_SEVERAL if len(_causes(trials)) > 1 else ""),
        last_words=last,
        hint=words.sentence(f"{fits}. {hint[:1].upper()}{hint[1:]}" if fits else hint),
        log=words.outside(failed.log, words.LABEL_LIMIT) if failed.log else None,
        message=message if message.text != last.text else Text(""),
        logs=tuple(shown),
        trials=tuple(
            Link(words.name(trial.id), view.anchors[trial.id]) for trial in trials if trial.id in view.anchors
        ),
        command=None if failed.side == "before" else command_for_configuration(view.run, failed.config),
    )


def _counted(trials: Sequence[Trial]) -> str:
    """`3 trials`; `3 trials, after` if they are of one version, and `3 trials, before and after` if of both."""
    sides = {trial.side for trial in trials if trial.side is not None}
    return ", ".join(filter(None, (count(len(trials), "trial"), " and ".join(sorted(sides, reverse=True)))))
