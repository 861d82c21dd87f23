"""What our clock costs: the host's time per step, and whether the device takes longer because of it."""

from __future__ import annotations

from statistics import mean

from loaderbench.consumers import WaitClock
from loaderbench.gpu_checkup.records import CheckedDevice, CheckState, GpuCheck
from loaderbench.records import Interval
from loaderbench.statistics.intervals import mean_interval, rate_interval

GOAL_US = 5.0
LARGEST_SLOWDOWN = 0.01
_KERNEL_S = 1e-3
_STEPS, _PAIRS, _UNCOUNTED = 50, 24, 2


def check_overhead(device: CheckedDevice, rate_hz: float) -> list[GpuCheck]:
    """Run blocks of steps with and without the clock in turns, and compare each block with its neighbor."""
    clock = device.wait_clock()
    cycles = round(_KERNEL_S * rate_hz)
    host_us, ratios, steps_s = [], [], []
    for pair in range(_UNCOUNTED + _PAIRS):
        order = (clock, None) if pair % 2 else (None, clock)
        first, second = (_block(device, cycles, one) for one in order)
        with_clock, without = (first, second) if pair % 2 else (second, first)
        if pair >= _UNCOUNTED:
            host_us.append((with_clock[0] - without[0]) * 1e6)
            ratios.append(with_clock[1] / without[1])
            steps_s.append(without[1])
    return [_of_host(host_us), _of_device(ratios, mean(steps_s))]


def _block(device: CheckedDevice, cycles: int, clock: WaitClock | None) -> tuple[float, float]:
    """Seconds per step that the host took to queue, and that the device took. The queue never fills up.

    A kernel before them keeps the device busy while the host queues the first step.
    """
    began, ended = device.event(), device.event()
    device.synchronize()
    device.spin(cycles)
    began_s = device.now_s()
    began.record()
    for _ in range(_STEPS):
        if clock is not None:
            clock.ask()
            clock.got()
        device.spin(cycles)
    ended.record()
    host_s = device.now_s() - began_s
    device.synchronize()
    return host_s / _STEPS, began.elapsed_time(ended) / 1e3 / _STEPS


def _of_host(values_us: list[float]) -> GpuCheck:
    cost = mean_interval(values_us)
    least = cost.est if cost.lo is None else cost.lo
    state: CheckState = "warning" if least > GOAL_US else "passed"
    return GpuCheck(
        id="clock_overhead_host",
        title="Clock overhead, host",
        state=state,
        said=f"{_with_ends(cost, '.1f')} µs per step; goal: at most {GOAL_US:g} µs",
        expected={"at_most_us": GOAL_US},
        found={"overhead_us": cost},
    )


def _of_device(ratios: list[float], step_s: float) -> GpuCheck:
    ratio = rate_interval(ratios)
    least = ratio.est if ratio.lo is None else ratio.lo
    state: CheckState = "failed" if least > 1 + LARGEST_SLOWDOWN else "passed"
    measurable = "slower, measurably" if least > 1 else "no measurable change"
    return GpuCheck(
        id="clock_overhead_device",
        title="Clock overhead, GPU",
        state=state,
        said=f"step time {_with_ends(ratio, '.4f')}\N{MULTIPLICATION SIGN} of {step_s * 1e3:.2f} ms, {measurable}; "
        f"at most {1 + LARGEST_SLOWDOWN:g}\N{MULTIPLICATION SIGN}",
        expected={"at_most_ratio": 1 + LARGEST_SLOWDOWN},
        found={"step_time_ratio": ratio, "step_s": step_s},
    )


def _with_ends(value: Interval, style: str) -> str:
    est = format(value.est, style)
    if value.lo is None or value.hi is None:
        return est
    return f"{est} ({format(value.lo, style)}\N{EN DASH}{format(value.hi, style)})"
