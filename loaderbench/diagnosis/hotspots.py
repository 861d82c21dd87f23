"""From stacks of threads that load to the lines of the user's own code with the largest shares of their time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import PurePath

from loaderbench.records import CodeLooks, CountedStack, Hotspot, StackFrame

MOST_LINES = 10
FEWEST_SHARE = 0.005


def find_hotspots(looks: Iterable[CodeLooks]) -> tuple[Hotspot, ...]:
    """Charge each stack to its innermost line of the user's own code, else to its innermost line."""
    known = list(looks)
    total = sum(one.looks for one in known)
    counts: Counter[StackFrame] = Counter()
    stages: dict[StackFrame, Counter[str]] = {}
    below: dict[StackFrame, Counter[str]] = {}
    for one in known:
        for stack in one.stacks:
            line, called = _charged(one, stack)
            if line is not None:
                counts[line] += stack.looks
                stages.setdefault(line, Counter())[stack.stage] += stack.looks
                below.setdefault(line, Counter())[called] += stack.looks
    return tuple(
        _hotspot(line, count / total, stages[line], below[line])
        for line, count in counts.most_common(MOST_LINES)
        if count >= FEWEST_SHARE * total
    )


def _charged(looks: CodeLooks, stack: CountedStack) -> tuple[StackFrame | None, str]:
    """The line, and the function that it called; empty where the line itself ran."""
    frames = [looks.frames[number] for number in stack.frames]
    own = [place for place, frame in enumerate(frames) if frame.own]
    if not own:
        return (frames[-1] if frames else None), ""
    return frames[own[-1]], "".join(frame.function for frame in frames[own[-1] + 1 :][:1])


def _hotspot(line: StackFrame, share: float, stages: Counter[str], below: Counter[str]) -> Hotspot:
    called, most = below.most_common(1)[0]
    name = PurePath(line.file).name
    return Hotspot(
        function=line.function,
        file=name,
        line=line.line,
        stage=stages.most_common(1)[0][0],
        share=share,
        text=line.text,
        below=called if most > below.total() / 2 else "",
        path="" if line.file == name else line.file,
    )
