"""The stacks of the threads that load as one tree: stage, then call below call, down from torch's fetcher."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from loaderbench.records import StackFrame
from loaderbench.report.view import View, trials_of

Stack = tuple[str, tuple[StackFrame, ...]]
"""A stage, and the calls of a stack, the outermost first."""


@dataclass
class Node:
    """A stage or a call, everything that it called, and the looks that found them."""

    name: str
    frame: StackFrame | None
    looks: int = 0
    below: dict[StackFrame | str, Node] = field(default_factory=dict)

    def walk(self, depth: int = 0) -> Iterator[tuple[int, Node]]:
        """Itself and all below it, each with its depth."""
        yield depth, self
        for child in self.below.values():
            yield from child.walk(depth + 1)


def stacks_of(view: View) -> Counter[Stack]:
    """Looks by stack, over the trials of the configuration that the verdict is about."""
    found: Counter[Stack] = Counter()
    if view.profile:
        trials = [view.profile]
    else:
        trials = [] if view.shown is None else trials_of(view.run.configurations[view.shown], view.trials)
    for trial in trials:
        looks = trial.code_looks
        if looks is not None:
            for stack in looks.stacks:
                found[stack.stage, tuple(looks.frames[number] for number in stack.frames)] += stack.looks
    return found


def tree_of(stacks: Counter[Stack]) -> Node:
    """All stacks in one; what is more frequent comes first."""
    root = Node("loading", None)
    for (stage, frames), looks in stacks.most_common():
        root.looks += looks
        node = root.below.setdefault(stage, Node(stage, None))
        node.looks += looks
        for frame in frames:
            node = node.below.setdefault(frame, Node(frame.function, frame))
            node.looks += looks
    return root
