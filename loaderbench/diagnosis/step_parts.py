"""The parts of a training step, as shares of step time, and the largest of them in words.

The rest of a step has no hooks. Stack samples name its line: a logger, a checkpoint, or transforms in the loop. They
also cover calls of a model without gradients, such as an evaluation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loaderbench.diagnosis.wording import in_percent, label_of, stage_name
from loaderbench.records import About, Evidence, Trial
from loaderbench.records.stages import WITHOUT_GRADIENTS

REST = "rest of the step"
_LISTED = 0.01  # share of step time; smaller parts are not listed


def step_parts_in_words(trials: Sequence[Trial]) -> tuple[Evidence, ...]:
    """One line about the largest part of a profiled loop's step; empty if the step was not divided."""
    return _in_words(trials, "cause", "the largest part")


def longer_than_the_wait(trials: Sequence[Trial]) -> tuple[Evidence, ...]:
    """The same for a step with a part that takes longer than the data wait; empty without one.

    The rest of a step counts only if its line is known: with `Profiler.stage`, a user may have marked few parts.
    """
    trial = _completed(trials)
    shares = step_shares(trial) if trial else {}
    if trial is None or not shares:
        return ()
    largest = max(shares, key=lambda part: shares[part])
    is_known = largest != REST or trial.of_one_process.step_line is not None
    is_longer = shares[largest] > (trial.of_one_process.data_wait_share or 0.0)
    return _in_words(trials, "wait", "more than the data wait") if is_known and is_longer else ()


def _in_words(trials: Sequence[Trial], about: About, which: str) -> tuple[Evidence, ...]:
    trial = _completed(trials)
    shares = step_shares(trial) if trial else {}
    if trial is None or not shares:
        return ()
    largest, *others = sorted(shares, key=lambda part: -shares[part])
    line = trial.of_one_process.step_line
    lines = {REST: f"mostly in {line.place}"} if line else {}
    figures = ", ".join(filter(None, [f"{in_percent(shares[largest])} of step time", which, lines.get(largest, "")]))
    listed = [_listed(part, shares[part], lines.get(part, "")) for part in others if shares[part] >= _LISTED]
    return (Evidence(about, label_of(largest), f"{figures}; {', '.join(listed)}" if listed else figures),)


def _listed(part: str, share: float, line: str) -> str:
    return f"{stage_name(part)} {in_percent(share)}" + (f" ({line})" if line else "")


def _completed(trials: Sequence[Trial]) -> Trial | None:
    return next((trial for trial in trials if trial.status == "completed"), None)


def step_shares(trial: Trial) -> Mapping[str, float]:
    """By part, its share of step time without the data wait; `REST` is outside of all parts.

    With a line, `REST` includes calls of a model without gradients, as that line does. Empty if no part was timed.
    Parts that overlap, and so take longer than the step, are shares of their sum.
    """
    one = trial.of_one_process
    parts_s = {name: cost.wall_s for name, cost in (one.step_stages or {}).items() if cost.wall_s}
    if one.step_line:
        parts_s.pop(WITHOUT_GRADIENTS, None)
    if not parts_s or not one.steady_s or not one.batches or one.data_wait_share is None:
        return {}
    step_s = one.steady_s / one.batches
    wait_s = step_s * one.data_wait_share
    rest_s = max(0.0, step_s - wait_s - sum(parts_s.values()))
    whole_s = wait_s + rest_s + sum(parts_s.values())
    return {name: part_s / whole_s for name, part_s in {**parts_s, REST: rest_s}.items()}
