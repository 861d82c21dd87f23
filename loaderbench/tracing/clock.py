"""Charges one thread's time to the stage it is in: each moment to the innermost stage alone, so that stages add up."""

from __future__ import annotations

import threading
import time

IDLE = 0  # outside every stage
LIGHT_S = 20e-6
"""Shorter stretches are taken to have been on the CPU: asking would cost a fiftieth of them. What is wrong about
that is made good by the next stretch for which the system is asked."""

now_s, _cpu_now_s, thread = time.perf_counter, time.thread_time, threading.get_ident


class StageClock:
    """Wall and thread CPU seconds, and the number of calls, of numbered stages.

    `ident` is the thread whose stages are timed just now, 0 for none; who enters a stage asks for that first.
    """

    def __init__(self) -> None:
        self.ident = 0
        self.wall_s: list[float] = []
        self.cpu_s: list[float] = []
        self.calls: list[int] = []
        self.entered = 0

    def add_stage(self) -> None:
        """Make room for one more."""
        self.wall_s.append(0.0)
        self.cpu_s.append(0.0)
        self.calls.append(0)

    def clear(self) -> None:
        """Forget what was charged."""
        size = len(self.calls)
        self.wall_s, self.cpu_s, self.calls = [0.0] * size, [0.0] * size, [0] * size

    def begin(self, stage: int) -> None:
        """Begin with a stage, outside every other, and time what this thread does."""
        self._stack: list[int] = []
        self.ident, self._top = thread(), stage
        self.calls[stage] += 1
        self.entered = 1
        self._at_s, self._cpu_at_s = now_s(), _cpu_now_s()

    def end(self) -> None:
        """Charge what is left to the innermost stage, and time no more."""
        self.wall_s[self._top] += now_s() - self._at_s
        self.cpu_s[self._top] += _cpu_now_s() - self._cpu_at_s
        self.ident = 0

    def leave_out(self, own_s: float) -> None:
        """Charge the last `own_s` seconds, which were the tracer's own, to nobody."""
        self._at_s += own_s
        self._cpu_at_s += own_s

    def enter(self, stage: int) -> None:
        """Begin a stage; what ran until now is charged to the one around it."""
        at_s = now_s()
        top, took_s = self._top, at_s - self._at_s
        self.wall_s[top] += took_s
        if took_s < LIGHT_S:
            self.cpu_s[top] += took_s
            self._cpu_at_s += took_s
        else:
            cpu_at_s = _cpu_now_s()
            self.cpu_s[top] += cpu_at_s - self._cpu_at_s
            self._cpu_at_s = cpu_at_s
        self._stack.append(top)
        self._top, self._at_s = stage, at_s
        self.calls[stage] += 1
        self.entered += 1

    def leave(self) -> None:
        """End the innermost stage."""
        at_s = now_s()
        top, took_s = self._top, at_s - self._at_s
        self.wall_s[top] += took_s
        if took_s < LIGHT_S:
            self.cpu_s[top] += took_s
            self._cpu_at_s += took_s
        else:
            cpu_at_s = _cpu_now_s()
            self.cpu_s[top] += cpu_at_s - self._cpu_at_s
            self._cpu_at_s = cpu_at_s
        self._top = self._stack.pop() if self._stack else IDLE
        self._at_s = at_s
