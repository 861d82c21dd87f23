"""Charges one thread's time to the stage it is in: each moment to the innermost stage only, so stages add up."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

IDLE = 0  # outside every stage
LIGHT_S = 20e-6
"""Shorter stretches are taken to have been on the CPU: asking would cost a fiftieth of them. What is wrong about
that is made good by the next stretch for which the system is asked."""

now_s, cpu_now_s, thread = time.perf_counter, time.thread_time, threading.get_ident


class StageClock:
    """Wall and thread CPU seconds, and the number of calls, of numbered stages.

    `ident` is the thread whose stages are timed just now, 0 for none; who enters a stage asks for that first. `top` is
    the stage it is in since `at_s`, when its CPU time was `cpu_at_s`.
    """

    __slots__ = ("at_s", "calls", "cpu_at_s", "cpu_s", "ident", "read_s", "reads", "stack", "top", "wall_s")

    def __init__(self) -> None:
        self.ident, self.top = 0, IDLE
        self.at_s = self.cpu_at_s = self.read_s = 0.0
        self.reads = 0
        self.stack: list[int] = []
        self.wall_s: list[float] = []
        self.cpu_s: list[float] = []
        self.calls: list[int] = []

    def add_stage(self) -> None:
        """Make room for one more."""
        self.wall_s.append(0.0)
        self.cpu_s.append(0.0)
        self.calls.append(0)

    def clear(self) -> None:
        """Forget what was charged."""
        size = len(self.calls)
        self.wall_s[:], self.cpu_s[:], self.calls[:] = [0.0] * size, [0.0] * size, [0] * size

    def begin(self, stage: int) -> None:
        """Begin with a stage, outside every other, and time what this thread does."""
        self.stack.clear()
        self.ident, self.top = thread(), stage
        self.calls[stage] += 1
        self.cpu_at_s = cpu_now_s()
        self.at_s = now_s()

    def end(self) -> None:
        """Charge what is left to the innermost stage, and time no more."""
        self.turn(IDLE)
        self.ident = 0

    def enter(self, stage: int) -> None:
        """Begin a stage; what ran until now is charged to the one around it."""
        self.stack.append(self.top)
        self.calls[stage] += 1
        self.turn(stage)

    def leave(self) -> None:
        """End the innermost stage."""
        self.turn(self.stack.pop() if self.stack else IDLE)

    def turn(self, stage: int) -> None:
        """Charge what ran until now, and go on in another stage."""
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
        self.top, self.at_s = stage, at_s

    def light(self, stage: int, took_s: float) -> None:
        """Charge the last `took_s` seconds to a stage that was not entered: for what is short and happens often."""
        used_s = took_s
        if took_s >= LIGHT_S:
            used_s = min(took_s, max(0.0, cpu_now_s() - self.cpu_at_s - (now_s() - self.at_s - took_s)))
        top = self.top
        self.wall_s[stage] += took_s
        self.cpu_s[stage] += used_s
        self.wall_s[top] -= took_s
        self.cpu_s[top] -= used_s
        self.calls[stage] += 1

    def settle(self, stage: int, top: int) -> None:
        """Charge the short reads since the last time, which were noted in passing, to their stage instead of `top`."""
        took_s, self.read_s = self.read_s, 0.0
        self.wall_s[stage] += took_s
        self.cpu_s[stage] += took_s
        self.wall_s[top] -= took_s
        self.cpu_s[top] -= took_s
        self.calls[stage] += self.reads
        self.reads = 0

    def leave_out(self, own_s: float) -> None:
        """Charge the last `own_s` seconds, which were the tracer's own, to nobody."""
        self.at_s += own_s
        self.cpu_at_s += own_s


def timed(call: Callable[..., Any], clock: StageClock, place: int, read: int) -> Callable[..., Any]:
    """A function that does what `call` does, and charges it to the stage `place`, and its short reads to `read`.

    Charging is written out twice: a shared function would add 119 ns to each of many calls per sample. Unlike
    `StageClock.enter` and `leave`, it also leaves its own entry time out of every stage, and settles short reads.
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
        stack.append(top)
        calls[place] += 1
        clock.top = place
        clock.at_s = begun_s = now_s()
        clock.cpu_at_s += begun_s - at_s  # what this took is charged to nobody
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
                clock.settle(read, top)
            clock.top, clock.at_s = stack.pop() if stack else IDLE, at_s

    return run
