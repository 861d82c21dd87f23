"""The clock for the waits of a step that may or may not use a device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loaderbench.consumers.kind import HostWaitClock
from loaderbench.cuda_use import computing_device, other_kind_in_use, uses_cuda

if TYPE_CHECKING:
    from loaderbench.consumers.cuda import CudaWaitClock


def clock_of_device() -> CudaWaitClock | None:
    """An event clock on the device that this process computes on, once the process has started to use CUDA."""
    if not uses_cuda():
        return None
    from loaderbench.consumers.cuda import CudaWaitClock

    return CudaWaitClock(computing_device())


class StepWaitClock:
    """The wait clock of a user's step: the host's clock until the step uses CUDA, then the device's clock.

    A CUDA step returns before the device is done. The host's clock alone would count the time that the device computes
    while the next batch is loaded as a wait.
    """

    def __init__(self) -> None:
        self._host, self._device = HostWaitClock(), clock_of_device()

    @property
    def is_of_host(self) -> bool:
        """Whether the step has used no device so far."""
        return self._device is None and other_kind_in_use() is None

    def ask(self) -> None:
        """Record the time before `next()`."""
        if self._device is None:
            self._device = clock_of_device()
        (self._device or self._host).ask()

    def got(self) -> None:
        """Record the time after `next()`."""
        (self._device or self._host).got()

    def waits_s(self) -> list[float]:
        """Return the wait of every batch so far, in seconds; blocks until the device has reported them."""
        return self._host.waits_s() + (self._device.waits_s() if self._device else [])
