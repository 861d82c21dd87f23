"""CUDA devices: list them, time the waits they are exposed to, and limit how far ahead the host can run."""

from __future__ import annotations

import os
import warnings
from collections import deque
from typing import Any

import torch

from loaderbench.consumers.accelerator import other_gpus, other_kind, platform
from loaderbench.records import Gpu, Reasons


def visible_gpus() -> tuple[tuple[Gpu, ...], Reasons]:
    """Devices in CUDA's order, honoring `CUDA_VISIBLE_DEVICES`, or why there is none. Initializes CUDA.

    If torch has another kind of accelerator, its devices are returned.
    """
    with warnings.catch_warnings(record=True) as caught:  # for example, that the driver is too old
        warnings.simplefilter("always")
        available = torch.cuda.is_available()
    if not available and (kind := other_kind()) is not None:
        return other_gpus(kind), {}
    if not available:
        why = str(caught[-1].message).splitlines()[0] if caught else f"CUDA finds no usable device{_choice_note()}"
        return (), {"gpus": why if platform() else "torch was built without CUDA"}
    gpus = []
    for index in range(torch.cuda.device_count()):
        found = torch.cuda.get_device_properties(index)
        uuid = str(getattr(found, "uuid", ""))
        gpus.append(Gpu(index, uuid, found.name, int(found.total_memory), platform=platform()))
    return tuple(gpus), {}


def _choice_note() -> str:
    """Mention the user's `CUDA_VISIBLE_DEVICES`, which can hide every GPU."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    return "" if chosen is None else f" with CUDA_VISIBLE_DEVICES={chosen!r}"


READ_FROM = 16
"""Number of pending waits from which they are read, before `next()`: a device with queued work is not waiting then."""


class CudaWaitClock:
    """A wait clock that records events on the current stream of a device, around `next()`.

    The device reaches the first event when it has drained, and the second as soon as the host, given the batch,
    enqueues it. The time in between is about max(0, batch ready - device drained), which excludes work still queued.
    Events are polled with `query()` and reused; only `waits_s` blocks. After a device error, which CUDA repeats at
    every call, no further wait is reported. The loop and `waits_s` raise the error.

    A stream that the loop creates is covered if it is the current stream, or if the current stream waits for it.
    `device` is CUDA's index, by default that of the current device. Source: CUDA Runtime API, "Event Management"
    (`cudaEventElapsedTime`).
    """

    def __init__(self, device: int | None = None) -> None:
        self._stream = CurrentStream(device)
        self._error: RuntimeError | None = None
        self._free: list[Any] = []
        self._pending: deque[tuple[Any, Any]] = deque()
        self._asked: Any = None
        self._waits_s: list[float] = []

    @property
    def can_record(self) -> bool:
        """Whether an event can be recorded now: not while the current stream captures a CUDA graph."""
        return not _is_capturing()

    def ask(self) -> None:
        """Record the event at which the device has no work left."""
        if len(self._pending) >= READ_FROM:
            self._read_reported()
        try:
            self._asked = self._event()
        except RuntimeError as error:
            self._error = error

    def got(self) -> None:
        """Record the event at which the device can receive new work."""
        try:
            if self._error is None:
                self._pending.append((self._asked, self._event()))
        except RuntimeError as error:
            self._error = error

    def take_s(self) -> list[float]:
        """Return the waits, in seconds and in order, that the device has reported since the last call; never blocks."""
        self._read_reported()
        reported, self._waits_s = self._waits_s, []
        return reported

    def waits_s(self) -> list[float]:
        """Return the wait of every batch so far, in seconds; blocks until the device is done.

        Raises the device's `RuntimeError`, if there was one.
        """
        if self._error is not None:
            raise self._error
        while self._pending:
            for event in self._pending[0]:
                event.synchronize()
            self._read()
        return self._waits_s

    def _read_reported(self) -> None:
        try:
            if self._pending and _is_capturing():
                return  # a query would make the capture fail
            while self._error is None and self._pending and _has_passed(self._pending[0]):
                self._read()
        except RuntimeError as error:
            self._error = error

    def _event(self) -> Any:
        if _is_capturing():
            raise RuntimeError("an event was due while a CUDA graph was captured")
        event = self._free.pop() if self._free else torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record(self._stream())
        return event

    def _read(self) -> None:
        asked, got = self._pending[0]
        self._waits_s.append(asked.elapsed_time(got) / 1000)
        self._pending.popleft()
        self._free += [asked, got]


def _is_capturing() -> bool:
    """Whether the current stream captures a CUDA graph; false without CUDA, as with a simulated device."""
    try:
        return torch.cuda.is_current_stream_capturing()
    except RuntimeError:
        return False


def _has_passed(events: tuple[Any, Any]) -> bool:
    """Whether the device has passed both events; the later one is checked first: it is likelier to be pending."""
    asked, got = events
    return bool(got.query() and asked.query())


class CurrentStream:
    """The current stream of a device, cached, because asking torch for it takes longer than recording an event."""

    def __init__(self, device: int | None) -> None:
        self._device, self._known = device, dict[int, Any]()
        self._handle = None if device is None else getattr(torch._C, "_cuda_getCurrentRawStream", None)

    def __call__(self) -> Any:
        """Return the current stream. Source of the call for its handle: torch's compiled code."""
        if self._handle is None:
            return torch.cuda.current_stream(self._device)
        handle = self._handle(self._device)
        if handle not in self._known:
            self._known[handle] = torch.cuda.current_stream(self._device)
        return self._known[handle]


class RunAhead:
    """Keep the host at most `steps` steps ahead of the device, as in a loop that reads its loss.

    Without a limit, hundreds of short steps are queued, and the measured rate is that of queueing them.
    """

    def __init__(self, device: int | None = None, steps: int = 2) -> None:
        self._stream, self._steps, self._queued = CurrentStream(device), steps, deque[Any]()

    def queued(self) -> None:
        """Record that a step is queued, and wait for the step that is too far back."""
        if len(self._queued) > self._steps:
            event = self._queued.popleft()
            event.synchronize()
        else:
            event = torch.cuda.Event()  # type: ignore[no-untyped-call]
        event.record(self._stream())
        self._queued.append(event)
