"""The share of loading time of each stack, and the lines of user code with the largest shares.

The clock-measured time of a stage is divided among the stacks sampled in it. A sampling thread must wait for the GIL,
so it finds code that holds the GIL too rarely. The clocks correct this between stages, but not within one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import PurePath

from loaderbench.diagnosis.thresholds import MOST
from loaderbench.records import CodeLooks, Hotspot, StackFrame, Trial

Frames = tuple[StackFrame, ...]
Stack = tuple[str, Frames]
"""A stage and its call stack, outermost call first."""

MOST_LINES = 10
FEWEST_SHARE = 0.005
_PASSING_ON = "torch/utils/data/dataset.py"
_CALLING_OTHERS = re.compile(r"^\w*(Compose|Sequential)\.|(^|\.)(__call__|_call_impl|_wrapped_call_impl)$")
"""Functions of transforms that call other transforms, or the method with the work."""

Shares = dict[str, float]
Line = tuple[str, int]
"""A file and a line in it. A comprehension in that line has frames of its own."""


def stack_shares(trials: Iterable[Trial]) -> dict[Stack, float]:
    """Shares of loading time over all trials with stacks, largest first, summing to 1; empty without stacks."""
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
    """The correction factor of each timed stage: its share of time by clocks over its share by stacks."""
    found: defaultdict[str, float] = defaultdict(float)
    for stack in looks.stacks:
        found[stack.stage] += stack.seconds
    timed_s = {stage: cost.wall_s for stage, cost in (trial.stages or {}).items() if cost.wall_s and found.get(stage)}
    whole_s, found_s = sum(timed_s.values()), sum(found[stage] for stage in timed_s)
    return {stage: (time_s / whole_s) / (found[stage] / found_s) for stage, time_s in timed_s.items()}


def find_hotspots(trials: Sequence[Trial]) -> tuple[Hotspot, ...]:
    """Charge each stack to its innermost line of user code, or else to that of the library called first."""
    found = _hotspots(trials, lambda frames: [_charged_line(frames)[0]]).values()
    largest = sorted(filter(_is_notable, found), key=lambda one: -one.share)[:MOST_LINES]
    transform = _main_transform(trials)
    return tuple(_with_transform(line, transform) for line in largest)


def _main_transform(trials: Sequence[Trial]) -> str:
    """The class with most of the time of all transforms, by clocks; empty without one."""
    wall_s: Shares = defaultdict(float)
    for trial in trials:
        for name, cost in (trial.stage_parts or {}).items():
            stage, _, part = name.partition("/")
            if stage == "transform":
                wall_s[part] += cost.wall_s or 0.0
    largest = max(wall_s, key=lambda part: wall_s[part], default="")
    return largest if largest and wall_s[largest] > sum(wall_s.values()) / 2 else ""


def _with_transform(line: Hotspot, transform: str) -> Hotspot:
    """The line, with the main transform as the function it calls if it calls a chain of them."""
    calls_others = line.stage == "transform" and _CALLING_OTHERS.search(line.below)
    return replace(line, below=transform) if transform and calls_others else line


def busiest_own_line(trials: Sequence[Trial]) -> Hotspot | None:
    """The innermost line of the user's own code with at least half of the loading time; `None` without one.

    Calls from the line count, so this is the caller of a function whose time is spread over several lines.
    """
    most = {line: found for line, found in _hotspots(trials, _own_lines).items() if found.share >= MOST}
    stacks = [_by_line(_own_lines(frames)) for _, frames in stack_shares(trials)]
    depths = [(depth, line) for lines in stacks for depth, line in enumerate(lines) if line in most]
    innermost = max(depths, key=lambda one: one[0], default=None)
    return most[innermost[1]] if innermost else None


def _own_lines(frames: Frames) -> Iterable[StackFrame]:
    """The frames of the user's own code, outermost first."""
    return [frame for frame in frames if frame.own]


def _by_line(frames: Iterable[StackFrame]) -> dict[Line, StackFrame]:
    """One frame for each line: that of a function instead of its comprehensions."""
    found: dict[Line, StackFrame] = {}
    for frame in frames:
        line = (frame.file, frame.line)
        if line not in found or _is_comprehension(found[line]):
            found[line] = frame
    return found


def _is_comprehension(frame: StackFrame) -> bool:
    return frame.function.endswith(">")


def _hotspots(trials: Iterable[Trial], lines_of: Callable[[Frames], Iterable[StackFrame]]) -> dict[Line, Hotspot]:
    """All lines that stacks are charged to."""
    by_stage: dict[Line, Shares] = {}
    below: dict[Line, Shares] = {}
    charged: list[StackFrame] = []
    for (stage, frames), share in stack_shares(trials).items():
        for line, frame in _by_line(lines_of(frames) if frames else ()).items():
            by_stage.setdefault(line, defaultdict(float))[stage] += share
            below.setdefault(line, defaultdict(float))[_charged_line(frames)[1]] += share
            charged.append(frame)
    return {line: _hotspot(frame, by_stage[line], below[line]) for line, frame in _by_line(charged).items()}


def _charged_line(frames: Frames) -> tuple[StackFrame, str]:
    """The charged line, and the function that it called; empty if the line itself ran.

    A dataset of a library is charged like a user's own: what lies below can be many libraries deep. Torch's datasets
    only pass on to others.
    """
    own = [place for place, frame in enumerate(frames) if frame.own]
    if not own:
        first = next((frame for frame in frames if not frame.file.startswith(_PASSING_ON)), frames[0])
        own = [place for place, frame in enumerate(frames) if _package(frame.file) == _package(first.file)]
    return frames[own[-1]], "".join(frame.function for frame in frames[own[-1] + 1 :][:1])


@cache
def _package(file: str) -> str:
    return next(iter(PurePath(file).parts), "")


def _is_notable(found: Hotspot) -> bool:
    return found.share >= FEWEST_SHARE


def _hotspot(line: StackFrame, stages: Shares, below: Shares) -> Hotspot:
    share, name = sum(stages.values()), PurePath(line.file).name
    called = max(below, key=lambda function: below[function])
    return Hotspot(
        function=line.function,
        file=name,
        line=line.line,
        stage=max(stages, key=lambda stage: stages[stage]),
        share=share,
        text=line.text,
        below=called if below[called] > share / 2 else "",
        path="" if line.file == name else line.file,
    )
