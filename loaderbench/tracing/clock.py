"""Charges a thread's time to its innermost stage only, so stage times add up."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

IDLE = 0  # outside any stage
LIGHT_S = 20e-6
"""Shorter intervals are assumed to be all CPU time: reading the CPU clock would cost 2% of them.

The next interval for which the CPU clock is read corrects the error.
"""

now_s, cpu_now_s, thread = time.perf_counter, time.thread_time, threading.get_ident


class StageClock:
    """Wall seconds, thread CPU seconds and number of calls of numbered stages.

    `ident` is the thread being timed, or 0; callers check it before they enter a stage. `top` is the current stage,
    entered at `at_s`, when the thread's CPU time was `cpu_at_s`. Short reads take `read_s` seconds since the stage last
    changed; they belong to the stage `read_stage`.
    """

    __slots__ = (
        "at_s", "calls", "cpu_at_s", "cpu_s", "ident", "read_s", "read_stage", "reads", "stack", "top", "wall_s",
    )  # fmt: skip

    def __init__(self) -> None:
        self.ident, self.top, self.read_stage = 0, IDLE, IDLE
        self.at_s = self.cpu_at_s = self.read_s = 0.0
        self.reads = 0
        self.stack: list[int] = []
        self.wall_s: list[float] = []
        self.cpu_s: list[float] = []
        self.calls: list[int] = []

    def add_stage(self) -> None:
        """Add a stage with zero counters."""
        self.wall_s.append(0.0)
        self.cpu_s.append(0.0)
        self.calls.append(0)

    def clear(self) -> None:
        """Reset all counters."""
        size = len(self.calls)
        self.wall_s[:], self.cpu_s[:], self.calls[:] = [0.0] * size, [0.0] * size, [0] * size

    def begin(self, stage: int) -> None:
        """Start timing the calling thread in an outermost stage."""
        self.stack.clear()
        self.ident, self.top = thread(), stage
        self.calls[stage] += 1
        self.cpu_at_s = cpu_now_s()
        self.at_s = now_s()

    def end(self) -> None:
        """Charge the remaining time to the innermost stage, and stop timing."""
        self.turn(IDLE)
        self.ident = 0

    def enter(self, stage: int) -> None:
        """Enter a nested stage. The time until now is charged to the enclosing stage."""
        self.stack.append(self.top)
        self.calls[stage] += 1
        self.turn(stage)

    def leave(self) -> None:
        """Leave the innermost stage."""
        self.turn(self.stack.pop() if self.stack else IDLE)

    def turn(self, stage: int) -> None:
        """Charge the time until now to the current stage, and switch to another one."""
        at_s = now_s()
        top, took_s = self.top, at_s - self.at_s
        self.wall_s[top] += took_s
        if took_s < LIGHT_S:
            self.cpu_s[top] += took_s
            self.cpu_at_s += took_s
        else:
            cpu_at_s = cpu_now_s()
            self.cpu_s[top] += cpu_at_s - self.cpu_at_s
            self.cpu_at_s = cpu_at_s
        if self.read_s:
            self.settle(top)
        self.top, self.at_s = stage, at_s

    def light(self, stage: int, took_s: float) -> None:
        """Charge the last `took_s` seconds to a stage without entering it, for short and frequent operations."""
        used_s = took_s
        if took_s >= LIGHT_S:
            used_s = min(took_s, max(0.0, cpu_now_s() - self.cpu_at_s - (now_s() - self.at_s - took_s)))
        top = self.top
        self.wall_s[stage] += took_s
        self.cpu_s[stage] += used_s
        self.wall_s[top] -= took_s
        self.cpu_s[top] -= used_s
        self.calls[stage] += 1

    def settle(self, top: int) -> None:
        """Move the short reads noted since the last call from stage `top`, which is left now, to the read stage."""
        stage, took_s, self.read_s = self.read_stage, self.read_s, 0.0
        self.wall_s[stage] += took_s
        self.cpu_s[stage] += took_s
        self.wall_s[top] -= took_s
        self.cpu_s[top] -= took_s
        self.calls[stage] += self.reads
        self.reads = 0

    def leave_out(self, own_s: float) -> None:
        """Charge the last `own_s` seconds, which the tracer itself used, to no stage."""
        self.at_s += own_s
        self.cpu_at_s += own_s


def timed(call: Callable[..., Any], clock: StageClock, place: int) -> Callable[..., Any]:
    """Wrap `call`: charge its time to the stage `place`, except its short reads.

    The accounting is written out twice because a shared function would add 119 ns to each of many calls per sample.
    Unlike `StageClock.enter`, the wrapper also excludes its own entry time from every stage.
    """
    wall_s, cpu_s, calls, stack = clock.wall_s, clock.cpu_s, clock.calls, clock.stack

    def run(*args: Any, **kwargs: Any) -> Any:
        if clock.ident != thread():
            return call(*args, **kwargs)
        at_s = now_s()
        top, took_s = clock.top, at_s - clock.at_s
        if took_s < LIGHT_S:
            used_s = took_s
            clock.cpu_at_s += took_s
        else:
            cpu_at_s = cpu_now_s()
            used_s = cpu_at_s - clock.cpu_at_s
            clock.cpu_at_s = cpu_at_s
        wall_s[top] += took_s
        cpu_s[top] += used_s
        if clock.read_s:
            clock.settle(top)
        stack.append(top)
        calls[place] += 1
        clock.top = place
        clock.at_s = begun_s = now_s()
        clock.cpu_at_s += begun_s - at_s  # the wrapper's own time belongs to no stage
        try:
            return call(*args, **kwargs)
        finally:
            at_s = now_s()
            top, took_s = clock.top, at_s - clock.at_s
            if took_s < LIGHT_S:
                used_s = took_s
                clock.cpu_at_s += took_s
            else:
                cpu_at_s = cpu_now_s()
                used_s = cpu_at_s - clock.cpu_at_s
                clock.cpu_at_s = cpu_at_s
            wall_s[top] += took_s
            cpu_s[top] += used_s
            if clock.read_s:
                clock.settle(top)
            clock.top, clock.at_s = stack.pop() if stack else IDLE, at_s

    return run
