"""The stacks of the threads that load as one tree: stage, then call below call, down from torch's fetcher."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from loaderbench.diagnosis.hotspots import Stack
from loaderbench.records import StackFrame, Trial
from loaderbench.report.view import View, trials_of


@dataclass
class Node:
    """A stage or a call, with its share of loading time, and everything that it called."""

    name: str
    frame: StackFrame | None
    share: float = 0.0
    below: dict[StackFrame | str, Node] = field(default_factory=dict)

    def walk(self, depth: int = 0) -> Iterator[tuple[int, Node]]:
        """Itself and all below it, each with its depth."""
        yield depth, self
        for child in self.below.values():
            yield from child.walk(depth + 1)


def shown_trials(view: View) -> list[Trial]:
    """Those with stacks, of the configuration that the verdict is about."""
    if view.profile:
        trials = [view.profile]
    else:
        trials = [] if view.shown is None else trials_of(view.run.configurations[view.shown], view.trials)
    return [trial for trial in trials if trial.code_looks and trial.code_looks.stacks]


def tree_of(shares: Mapping[Stack, float]) -> Node:
    """All stacks in one; of two calls the one that comes first in `shares` is first."""
    root = Node("loading", None)
    for (stage, frames), share in shares.items():
        root.share += share
        node = root.below.setdefault(stage, Node(stage, None))
        node.share += share
        for frame in frames:
            node = node.below.setdefault(frame, Node(frame.function, frame))
            node.share += share
    return root
