"""How much of something a GPU finishes per second."""

from __future__ import annotations

from collections.abc import Callable

from loaderbench.gpu_checkup.records import CheckedDevice
from loaderbench.records import Interval
from loaderbench.statistics.intervals import rate_interval

_UNCOUNTED = 2


def finished_per_s(device: CheckedDevice, call: Callable[[], None], amount: float, *, calls: int) -> Interval:
    """Call again and again, each time until the device has finished; `amount` is that of one call.

    The first two calls are not counted.
    """
    rates = []
    for number in range(_UNCOUNTED + calls):
        device.synchronize()
        began_s = device.now_s()
        call()
        device.synchronize()
        if number >= _UNCOUNTED:
            rates.append(amount / (device.now_s() - began_s))
    return rate_interval(rates)
