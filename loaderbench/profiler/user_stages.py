"""What the stages of a loop's own body cost, by kind of batch."""

from __future__ import annotations

from collections import defaultdict

from loaderbench.records import StageCost
from loaderbench.tracing.clock import StageClock, thread

Seconds = defaultdict[tuple[int, str], float]


class UserStages:
    """Adds up wall and CPU seconds by stage, separately for each kind of batch: a mean never mixes kinds.

    Every thread has a clock of its own, which is never set back: what it has more than last time is new.
    """

    def __init__(self) -> None:
        self._clocks: dict[int, StageClock] = {}
        self._places: dict[str, int] = {"": 0}  # "": outside of all stages
        self._reported: dict[int, tuple[list[float], list[float]]] = {}
        self._wall_s: Seconds = defaultdict(float)
        self._cpu_s: Seconds = defaultdict(float)

    def find(self, name: str) -> tuple[StageClock, int]:
        """The clock of the calling thread, running, and the stage's number on it."""
        place = self._places.setdefault(name, len(self._places))
        clock = self._clocks.setdefault(thread(), StageClock())
        while len(clock.calls) <= place:
            clock.add_stage()
        if not clock.ident:
            clock.begin(0)
        return clock, place

    def end_body(self, kind: int) -> None:
        """Add what was charged since the last batch to its kind."""
        names = {place: name for name, place in self._places.items()}
        for ident, clock in list(self._clocks.items()):
            wall_s, cpu_s = clock.wall_s.copy(), clock.cpu_s.copy()
            before = self._reported.get(ident, ([], []))
            for place in range(1, len(wall_s)):
                self._wall_s[kind, names[place]] += wall_s[place] - _at(before[0], place)
                self._cpu_s[kind, names[place]] += cpu_s[place] - _at(before[1], place)
            self._reported[ident] = wall_s, cpu_s

    def costs(self, kind: int, batches: int) -> dict[str, StageCost]:
        """Seconds per batch of this kind."""
        found = {name: (kind, name) for name in self._places if self._wall_s.get((kind, name), 0.0) > 0}
        return {name: StageCost(self._cpu_s[at] / batches, self._wall_s[at] / batches) for name, at in found.items()}


def _at(values: list[float], place: int) -> float:
    return values[place] if place < len(values) else 0.0
