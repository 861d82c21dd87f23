"""Inputs and results of a GPU checkup. Units are in the names of the values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from loaderbench.consumers import WaitClock
from loaderbench.records import Interval, Reasons

CheckState = Literal["passed", "warning", "failed", "not_checked"]
Value = float | str | bool | Interval | list[str] | None


@dataclass(frozen=True, kw_only=True)
class GpuCheck:
    """One check. `expected` and `found` hold values by name; `not_measured` holds the reason for each `None`.

    `said` is the line that a terminal shows.
    """

    id: str
    title: str
    state: CheckState
    said: str
    expected: dict[str, Value] = field(default_factory=dict)
    found: dict[str, Value] = field(default_factory=dict)
    not_measured: Reasons = field(default_factory=dict)


class TimedEvent(Protocol):
    """A point in the device's work, like `torch.cuda.Event(enable_timing=True)`."""

    def record(self) -> None:
        """Queue the event."""

    def synchronize(self) -> None:
        """Wait until the device has reached the event."""

    def elapsed_time(self, later: Any, /) -> float:
        """Milliseconds from this event to a later one."""
        ...


class CheckedDevice(Protocol):
    """The GPU under test, with the host's clock: the only interface of the checks. Tests simulate it."""

    def launch_kernel(self) -> None:
        """Run one kernel. Raises CUDA's errors, and `RuntimeError` for a wrong result."""

    def spin(self, cycles: int) -> None:
        """Queue a kernel that keeps the device busy for this many cycles."""

    def event(self) -> TimedEvent:
        """Create an event, not recorded yet."""
        ...

    def synchronize(self) -> None:
        """Wait for all queued work."""

    def wait_clock(self) -> WaitClock:
        """Create a clock of the kind that trials use, which the checks examine."""
        ...

    def prepare_copy(self, size_bytes: int, *, pinned: bool) -> Any:
        """Allocate host memory of this size, and as much on the device."""

    def copy(self, prepared: Any) -> None:
        """Queue the copy from the host to the device."""

    def decode(self, images: int) -> None:
        """Decode this many copies of one photo in one call, as trials do. Raises any error of the decoder."""

    def decoded_psnr_db(self) -> float | None:
        """PSNR of the decoded pixels against the CPU's; `None` if identical. Raises any error of the decoder."""

    def now_s(self) -> float:
        """The host's clock."""
        ...

    def sleep(self, seconds: float) -> None:
        """Sleep on the host, as a slow loader does."""
