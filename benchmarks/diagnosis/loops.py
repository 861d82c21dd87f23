"""Runs one loop, profiled or not, with its own clock: a fix must not be judged by the tool's own figures."""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import Any

from benchmarks.diagnosis.facts import Facts, Watched
from benchmarks.diagnosis.scenario import Loop

LONGEST_S = 30.0  # of one loop, warm-up included


class OwnClock:
    """Waits, steps and their rate after warm-up, boundaries between epochs included."""

    def __init__(self, loop: Loop) -> None:
        self._loop, self._began_s = loop, time.perf_counter()
        self.facts: Facts | None = None
        self._watched: Watched | None = None
        self.batches, self.waits_s, self.steady_s = -loop.warmup - 1, 0.0, 0.0

    def got(self, wait_s: float) -> None:
        if self.batches >= 0:
            self.waits_s += wait_s

    def stepped(self) -> bool:
        """Count the batch; says whether the loop has run long enough."""
        now_s = time.perf_counter()
        self.batches += 1
        if self.batches == 0:
            self._steady_from_s, self._watched = now_s, Watched()
            if self._loop.ready is not None:
                self._loop.ready.touch()
        self.steady_s = now_s - self._steady_from_s if self.batches > 0 else 0.0
        return self.steady_s > self._loop.seconds or (now_s - self._began_s > LONGEST_S and self._loop.ready is None)

    def look(self) -> None:
        self.facts = self._watched.facts() if self._watched else None

    def told(self) -> dict[str, float]:
        if self.steady_s == 0:
            return {}
        return {"batches_per_s": self.batches / self.steady_s, "wait_share": self.waits_s / self.steady_s}


def drive(loop: Loop, profiler: Any) -> tuple[dict[str, float], Facts | None]:
    """Run it to its end. Returns rate and wait share, and what the processes did."""
    clock, source = OwnClock(loop), None
    mark = profiler.stage if profiler else lambda _name: nullcontext()
    while True:
        source = loop.loader() if source is None or loop.fresh else source
        if _epoch(loop, profiler.iter(source) if profiler else source, clock, mark):
            return clock.told(), clock.facts


def _epoch(loop: Loop, source: Any, clock: OwnClock, mark: Any) -> bool:
    """One epoch, whose beginning counts to its first batch's wait; says whether the loop has run long enough."""
    batches = None
    while True:
        asked_s = time.perf_counter()
        batches = iter(source) if batches is None else batches
        batch = next(batches, None)
        clock.got(time.perf_counter() - asked_s)
        if batch is None:
            return False
        loop.step(batch, mark)
        if clock.stepped():
            clock.look()  # while the epoch's workers are there
            return True


def profile(loop: Loop) -> dict[str, Any]:
    """What `Profiler(trace=True)` concludes, beside the loop's own figures."""
    from loaderbench import Profiler

    with Profiler(warmup=loop.warmup, trace=True) as prof:
        told, _ = drive(loop, prof)
    record = prof.result.to_dict()
    return {"verdict": record["verdict"], "recommendations": record["recommendations"], **told}


def look(loop: Loop) -> dict[str, Any]:
    """What the loop and its processes do with nobody watching but the kernel."""
    told, facts = drive(loop, None)
    return {**told, "facts": facts}
