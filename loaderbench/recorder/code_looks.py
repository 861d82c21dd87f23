"""From looks at threads that load to a record of their stacks."""

from __future__ import annotations

import linecache
from collections import defaultdict
from collections.abc import Mapping

from loaderbench.code_places import CodeFrame, CodeStack, is_library, shown_path
from loaderbench.recorder.code_stages import stage_of
from loaderbench.records import CodeLooks, CountedStack, StackFrame

FEWEST_LOOKS = 20
TOO_FEW = f"fewer than {FEWEST_LOOKS} stack samples of the loading threads"

RARE_SHARE = 0.005
"""Rarer stacks are counted with their caller's, but for lines of the user's own code and the calls that these make."""


Calls = tuple[CodeFrame, ...]


def code_looks_of(stacks: Mapping[CodeStack, float], looks: int, folder: str) -> CodeLooks | None:
    """Name the places of stacks, which stand for seconds each, relative to a folder.

    Returns `None` for too few looks to say anything.
    """
    if looks < FEWEST_LOOKS:
        return None
    merged = _without_rare(_with_stages(stacks), RARE_SHARE * sum(stacks.values()))
    places: dict[CodeFrame, int] = {}
    counted = [
        CountedStack(stage, tuple(places.setdefault(frame, len(places)) for frame in frames), round(seconds, 4))
        for (stage, frames), seconds in sorted(merged.items(), key=lambda item: -item[1])
    ]
    return CodeLooks(looks, tuple(_shown(frame, folder) for frame in places), tuple(counted))


def _with_stages(stacks: Mapping[CodeStack, float]) -> dict[CodeStack, float]:
    """Give a stack that was found in a sample without clocks the stage that clocks gave to the same calls."""
    by_clocks: dict[Calls, dict[str, float]] = {}
    for stack, seconds in stacks.items():
        for depth in range(1, len(stack.frames) + 1) if stack.stage else ():
            by_clocks.setdefault(stack.frames[:depth], defaultdict(float))[stack.stage] += seconds
    found: dict[CodeStack, float] = {}
    for stack, seconds in stacks.items():
        known = CodeStack(stack.stage or _stage_by_clocks(stack.frames, by_clocks) or stage_of(stack), stack.frames)
        found[known] = found.get(known, 0.0) + seconds
    return found


def _stage_by_clocks(frames: Calls, by_clocks: Mapping[Calls, dict[str, float]]) -> str:
    """The most frequent one of as many of these calls as clocks were seen with; empty without any."""
    known = (by_clocks[frames[:depth]] for depth in range(len(frames), 0, -1) if frames[:depth] in by_clocks)
    return next((max(stages, key=lambda stage: stages[stage]) for stages in known), "")


def _without_rare(stacks: Mapping[CodeStack, float], fewest_s: float) -> dict[CodeStack, float]:
    """Charge each rare stack to the one of its caller, the deepest first."""
    merged = dict(stacks)
    for depth in range(max(len(stack.frames) for stack in stacks), 0, -1):
        for stack in [one for one in merged if len(one.frames) == depth and depth > _kept(one)]:
            if merged[stack] < fewest_s:
                seconds, caller = merged.pop(stack), CodeStack(stack.stage, stack.frames[:-1])
                merged[caller] = merged.get(caller, 0.0) + seconds
    return merged


def _kept(stack: CodeStack) -> int:
    """How many frames are to be kept: down to what the innermost line of the user's own calls."""
    own = [depth for depth, frame in enumerate(stack.frames, 1) if not is_library(frame.file)]
    return own[-1] + 1 if own else 1


def _shown(frame: CodeFrame, folder: str) -> StackFrame:
    own = not is_library(frame.file)
    return StackFrame(
        file=shown_path(frame.file, folder),
        line=frame.line,
        function=frame.function,
        own=own,
        text=linecache.getline(frame.file, frame.line).strip()[:200] if own else "",
    )
