"""What a checkup of a GPU is asked and answers. Units are in the names of the values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from loaderbench.consumers import WaitClock
from loaderbench.records import Interval, Reasons

CheckState = Literal["passed", "warning", "failed", "not_checked"]
Value = float | str | bool | Interval | list[str] | None


@dataclass(frozen=True, kw_only=True)
class GpuCheck:
    """One check. `expected` and `found` hold values by name; what is `None` there has its reason in `not_measured`.

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
    """A moment of the device, as `torch.cuda.Event(enable_timing=True)`."""

    def record(self) -> None:
        """Queue it."""

    def synchronize(self) -> None:
        """Wait until the device has reached it."""

    def elapsed_time(self, later: Any, /) -> float:
        """Milliseconds from this one to a later one."""
        ...


class CheckedDevice(Protocol):
    """The GPU under test, with the host's clock: all that the checks touch. A simulated one is in the tests."""

    def launch_kernel(self) -> None:
        """Run one kernel. Raises what CUDA says, and `RuntimeError` for a wrong result."""

    def spin(self, cycles: int) -> None:
        """Queue a kernel that keeps the device busy for so many of its cycles."""

    def event(self) -> TimedEvent:
        """An event that is not recorded yet."""
        ...

    def synchronize(self) -> None:
        """Wait for all that is queued."""

    def wait_clock(self) -> WaitClock:
        """A new clock of the kind that a trial uses: what the checks are about."""
        ...

    def prepare_copy(self, size_bytes: int, *, pinned: bool) -> Any:
        """Host memory of this size, and room for it on the device."""

    def copy(self, prepared: Any) -> None:
        """Queue the copy from the host to the device."""

    def decode(self, images: int) -> None:
        """Decode this many copies of one photo in one call, as trials do. Raises any error of the decoder."""

    def decoded_psnr_db(self) -> float | None:
        """PSNR of its pixels against the CPU's; `None` if they are identical. Raises any error of the decoder."""

    def now_s(self) -> float:
        """The host's clock."""
        ...

    def sleep(self, seconds: float) -> None:
        """Sleep on the host, as a slow loader does."""
