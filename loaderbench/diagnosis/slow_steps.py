"""The parts of a training step, as shares of step time, and ranks whose steps are slow.

The rest of a step has no hooks. Stack samples name its line: a logger, a checkpoint, or transforms in the loop. They
also cover calls of a model without gradients, such as an evaluation.

Ranks exchange gradients during the backward pass, so a rank that gets there early waits for the last one, which has the
shortest backward pass. If that rank is late because of its work, and not because of its batch, its steps are slow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

from loaderbench.diagnosis.wording import in_percent, label_of, stage_name
from loaderbench.records import About, Evidence, Rank, Trial
from loaderbench.records.words import WITHOUT_GRADIENTS

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


BACKWARD = "backward"

ALIKE = 0.5
"""Ranks with at least this share of the largest difference in work are slow together."""

LEAST_WORK = 0.1
"""Smallest difference in work that counts, as a share of step time: the parts of a step are measured in few steps."""


def slow_in_steps(ranks: Sequence[Rank]) -> tuple[Rank, ...]:
    """The ranks with most work outside of the backward pass, if all others wait for them; most work first."""
    known = sorted((one for one in ranks if BACKWARD in one.step_parts), key=_work, reverse=True)
    if len(known) < 2:
        return ()
    least = _work(known[-1])
    slow = [one for one in known if _work(one) - least >= ALIKE * (_work(known[0]) - least)]
    others = known[len(slow) :]
    last = min(known, key=lambda one: one.step_parts[BACKWARD])
    are_waited_for = last in slow and len(slow) <= len(others) and _lost(slow, others) >= LEAST_WORK
    return tuple(slow) if are_waited_for else ()


def lost_in_backward(slow: Sequence[Rank], ranks: Sequence[Rank]) -> float:
    """Share of step time that a typical other rank waits in its backward pass."""
    return _lost(slow, [one for one in ranks if one not in slow and BACKWARD in one.step_parts])


def largest_difference(slow: Sequence[Rank], ranks: Sequence[Rank]) -> str:
    """The part in which slow ranks work most beyond the others, in words: `forward takes 48% of step time there`."""
    others = [one for one in ranks if one not in slow and BACKWARD in one.step_parts]
    names = {name for one in slow for name in one.step_parts} - {BACKWARD}
    part = max(sorted(names), key=lambda name: _typical(slow, name) - _typical(others, name))
    lines = {one.step_line.place for one in slow if one.step_line is not None}
    place = f" ({lines.pop()})" if part == REST and len(lines) == 1 else ""
    here, there = in_percent(_typical(slow, part)), in_percent(_typical(others, part))
    return f"{stage_name(part)}{place} takes {here} of step time, {there} in the others"


def with_estimated_waits(ranks: Sequence[Rank]) -> tuple[Rank, ...]:
    """The ranks, with their waits for one another estimated on GPUs, where the host runs ahead and cannot time them.

    A rank waits for others in its backward pass, so the estimate is how much longer than the shortest one this is.
    """
    are_unknown = all(
        one.device is not None and one.rank_wait_share is None and BACKWARD in one.step_parts for one in ranks
    )
    if len(ranks) < 2 or not are_unknown:
        return tuple(ranks)
    shortest = min(one.step_parts[BACKWARD] for one in ranks)
    return tuple(
        replace(
            one,
            rank_wait_share=one.step_parts[BACKWARD] - shortest,
            is_wait_estimated=True,
            not_measured={name: why for name, why in one.not_measured.items() if name != "rank_wait_share"},
        )
        for one in ranks
    )


def _lost(slow: Sequence[Rank], others: Sequence[Rank]) -> float:
    """The difference in work, or in backward passes if that is smaller."""
    work = median(map(_work, slow)) - median(map(_work, others))
    return min(work, _typical(others, BACKWARD) - _typical(slow, BACKWARD))


def _work(one: Rank) -> float:
    """Share of step time outside of the backward pass and the data wait."""
    return 1.0 - (one.data_wait_share or 0.0) - one.step_parts[BACKWARD]


def _typical(ranks: Sequence[Rank], part: str) -> float:
    return median(one.step_parts.get(part, 0.0) for one in ranks)
