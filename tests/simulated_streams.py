"""CUDA devices on a virtual clock: streams that do their work in order, and events on them.

`simulated_device.py` puts them below `torch.cuda`. The host's time passes only where a test says so, in `host`, or
where a real host would block: in `synchronize`, in a copy from pageable memory, and where too much is queued.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

STICKY = "CUDA error: device-side assert triggered"
NOT_READY = "Both events must be completed before calculating elapsed time."
OTHER_DEVICE = "Event device does not match the device of the stream"
QUEUE_DEPTH = 1_024
"""Kernels and copies that a device takes before the host has to wait, as those of NVIDIA's do about."""

Span = tuple[float, float]
"""Begin and end of some work, in seconds of the virtual clock."""


@dataclass
class VirtualClock:
    """The host's time, and how much of it passed in calls that waited for a device."""

    now_s: float = 0.0
    blocked_s: float = 0.0

    def host(self, seconds: float) -> None:
        """Spend time on the host."""
        self.now_s += seconds

    def block_until(self, moment_s: float) -> None:
        """Wait for a device."""
        self.blocked_s += max(0.0, moment_s - self.now_s)
        self.now_s = max(self.now_s, moment_s)


@dataclass(eq=False)
class SimulatedStream:
    """Does its work in the order in which it was queued.

    `free_at_s` is the end of all of it. `busy` are kernels and copies, `stalls` the time spent waiting for events.
    """

    device: SimulatedDevice
    free_at_s: float = 0.0
    idle_s: float = 0.0
    busy: list[Span] = field(default_factory=list)
    stalls: list[Span] = field(default_factory=list)

    def launch(self, seconds: float) -> None:
        """Queue a kernel, or a copy from pinned memory; returns at once unless the queue of the device is full."""
        self.device.check()
        self.device.make_room()
        began_s = max(self.device.now_s, self.free_at_s)
        self.idle_s += began_s - self.free_at_s
        self.free_at_s = began_s + seconds
        self.busy.append((began_s, self.free_at_s))

    def copy_pageable(self, seconds: float) -> None:
        """Copy from pageable memory: the host waits for the stream, and for the copy."""
        self.launch(seconds)
        self.device.clock.block_until(self.free_at_s)

    def wait_event(self, event: SimulatedEvent) -> None:
        """Let what is queued from now on wait for an event; the host does not."""
        self.device.check()
        began_s = max(self.device.now_s, self.free_at_s)
        if event.at_s is not None and event.at_s > began_s:
            self.idle_s += began_s - self.free_at_s
            self.stalls.append((began_s, event.at_s))
            self.free_at_s = event.at_s

    def wait_stream(self, other: SimulatedStream) -> None:
        """Wait for all that another stream has queued."""
        self.wait_event(SimulatedEvent(at_s=other.free_at_s))

    def synchronize(self) -> None:
        """Block the host until all is done."""
        self.device.check()
        self.device.clock.block_until(self.free_at_s)

    @property
    def stalled_s(self) -> float:
        """How long it waited for other streams."""
        return sum(end_s - began_s for began_s, end_s in self.stalls)

    def idle_within(self, windows: Iterable[Span]) -> float:
        """How long it had nothing to do within these windows, by what it did and not by any event."""
        taken = [*self.busy, *self.stalls]
        return sum(
            (end_s - began_s) - sum(max(0.0, min(end_s, end) - max(began_s, began)) for began, end in taken)
            for began_s, end_s in windows
        )


class SimulatedDevice:
    """One device with its default stream, and as many others as are asked for.

    After `fail`, every call raises, as CUDA does after an error in a kernel. `events` counts how many were recorded.
    `depth` is how much can be queued on all its streams together.
    """

    def __init__(self, clock: VirtualClock | None = None, index: int = 0, depth: int = QUEUE_DEPTH) -> None:
        self.clock, self.index, self.depth = clock or VirtualClock(), index, depth
        self.default = self.current = SimulatedStream(self)
        self.streams = [self.default]
        self.events = 0
        self._failed = False

    def stream(self) -> SimulatedStream:
        """One more of its streams."""
        self.streams.append(SimulatedStream(self))
        return self.streams[-1]

    def host(self, seconds: float) -> None:
        """Spend time on the host."""
        self.clock.host(seconds)

    def launch(self, seconds: float) -> None:
        """Queue a kernel, or a copy from pinned memory, on the current stream."""
        self.current.launch(seconds)

    def copy_pageable(self, seconds: float) -> None:
        """Copy from pageable memory on the current stream."""
        self.current.copy_pageable(seconds)

    def synchronize(self) -> None:
        """Wait for all that is queued."""
        self.check()
        self.clock.block_until(max(stream.free_at_s for stream in self.streams))

    def make_room(self) -> None:
        """Block the host while the queue is full."""
        ends_s = sorted(end_s for stream in self.streams for _, end_s in stream.busy if end_s > self.now_s)
        if len(ends_s) >= self.depth:
            self.clock.block_until(ends_s[len(ends_s) - self.depth])

    @property
    def now_s(self) -> float:
        """The host's time."""
        return self.clock.now_s

    @property
    def blocked_s(self) -> float:
        """The host's time in calls that waited for a device."""
        return self.clock.blocked_s

    @property
    def free_at_s(self) -> float:
        """The end of all work on the default stream."""
        return self.default.free_at_s

    @property
    def idle_s(self) -> float:
        """How long the default stream had nothing to do before its last work."""
        return self.default.idle_s

    @property
    def queued(self) -> int:
        """How many kernels and copies are queued or running."""
        return sum(end_s > self.now_s for stream in self.streams for _, end_s in stream.busy)

    def fail(self) -> None:
        """Let a kernel fail."""
        self._failed = True

    def check(self) -> None:
        """Raise the error of the device, if it has one."""
        if self._failed:
            raise RuntimeError(STICKY)


@dataclass
class SimulatedEvent:
    """Reached when the work queued before it on its stream is done; it belongs to the device that records it first."""

    current_stream: Any = None
    enable_timing: bool = False
    at_s: float | None = None
    device: SimulatedDevice | None = None

    def record(self, stream: SimulatedStream | None = None) -> None:
        """Queue it, on the current stream by default."""
        found = stream or self.current_stream()
        found.device.check()
        if self.device not in (None, found.device):
            raise RuntimeError(OTHER_DEVICE)
        self.device = found.device
        self.device.events += 1
        self.at_s = max(self.device.now_s, found.free_at_s)

    def query(self) -> bool:
        """Whether it is reached."""
        self._check()
        return self.device is None or self.at_s is None or self.at_s <= self.device.now_s

    def synchronize(self) -> None:
        """Wait until it is reached."""
        self._check()
        if self.device is not None:
            self.device.clock.block_until(self.at_s or 0.0)

    def wait(self, stream: SimulatedStream | None = None) -> None:
        """Let a stream wait for it."""
        (stream or self.current_stream()).wait_event(self)

    def elapsed_time(self, later: SimulatedEvent) -> float:
        """Milliseconds between two that were recorded with timing, on one device, and reached."""
        assert self.enable_timing, "recorded without timing"
        assert self.at_s is not None, "not recorded"
        assert later.at_s is not None, "not recorded"
        assert self.device is later.device, "on two devices"
        if not (self.query() and later.query()):
            raise RuntimeError(NOT_READY)
        return (later.at_s - self.at_s) * 1e3

    def _check(self) -> None:
        if self.device is not None:
            self.device.check()
