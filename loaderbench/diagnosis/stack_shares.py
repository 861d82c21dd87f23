"""What share of loading time a stack has: the time of its stage, by clocks, divided among the stacks found in it.

A thread that looks at another waits for the interpreter's lock, so it finds code that keeps the lock too rarely. Clocks
correct this between stages; within one it remains.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from loaderbench.records import CodeLooks, StackFrame, Trial

Stack = tuple[str, tuple[StackFrame, ...]]
"""A stage, and the calls of a stack, the outermost first."""


def stack_shares(trials: Iterable[Trial]) -> dict[Stack, float]:
    """Shares of loading time over all trials with stacks, the largest first; they add up to 1. Empty without any."""
    weights: defaultdict[Stack, float] = defaultdict(float)
    for trial in trials:
        looks = trial.code_looks
        if looks is not None:
            factors = _factors(trial, looks)
            for stack in looks.stacks:
                frames = tuple(looks.frames[number] for number in stack.frames)
                weights[stack.stage, frames] += stack.seconds * factors.get(stack.stage, 1.0)
    total = sum(weights.values())
    return {stack: weights[stack] / total for stack in sorted(weights, key=lambda one: -weights[one])}


def _factors(trial: Trial, looks: CodeLooks) -> dict[str, float]:
    """By stage, for those that were timed: its part of their time by clocks over that of its stacks."""
    found: defaultdict[str, float] = defaultdict(float)
    for stack in looks.stacks:
        found[stack.stage] += stack.seconds
    timed_s = {stage: cost.wall_s for stage, cost in (trial.stages or {}).items() if cost.wall_s and found.get(stage)}
    whole_s, found_s = sum(timed_s.values()), sum(found[stage] for stage in timed_s)
    return {stage: (time_s / whole_s) / (found[stage] / found_s) for stage, time_s in timed_s.items()}
