"""A function whose calls are charged to a stage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loaderbench.tracing.clock import IDLE, LIGHT_S, cpu_now_s, now_s, thread
from loaderbench.tracing.tracer import Tracer


def timed(call: Callable[..., Any], tracer: Tracer, place: int) -> Callable[..., Any]:
    """A function that does what `call` does, and charges it to a stage.

    `StageClock.enter` and `leave`, written out: this runs many times for every sample, with the caches full of pixels.
    """
    clock, read = tracer.clock, tracer.read
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
