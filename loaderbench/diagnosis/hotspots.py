"""From stacks of threads that load to the lines of the user's own code with the largest shares of their time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import PurePath

from loaderbench.diagnosis.stack_shares import stack_shares
from loaderbench.records import Hotspot, StackFrame, Trial

MOST_LINES = 10
FEWEST_SHARE = 0.005

Shares = dict[str, float]


def find_hotspots(trials: Iterable[Trial]) -> tuple[Hotspot, ...]:
    """Charge each stack to its innermost line of the user's own code, else to its innermost line."""
    by_stage: dict[StackFrame, Shares] = {}
    below: dict[StackFrame, Shares] = {}
    for (stage, frames), share in stack_shares(trials).items():
        if frames:
            line, called = _charged(frames)
            by_stage.setdefault(line, defaultdict(float))[stage] += share
            below.setdefault(line, defaultdict(float))[called] += share
    found = [_hotspot(line, stages, below[line]) for line, stages in by_stage.items()]
    return tuple(sorted(filter(_matters, found), key=lambda one: -one.share)[:MOST_LINES])


def _charged(frames: tuple[StackFrame, ...]) -> tuple[StackFrame, str]:
    """The line, and the function that it called; empty where the line itself ran."""
    own = [place for place, frame in enumerate(frames) if frame.own]
    if not own:
        return frames[-1], ""
    return frames[own[-1]], "".join(frame.function for frame in frames[own[-1] + 1 :][:1])


def _matters(found: Hotspot) -> bool:
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
