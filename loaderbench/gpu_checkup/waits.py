"""Check loaderbench's clock on a GPU: what it reads for planted, known waits, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, median

from loaderbench.consumers import WaitClock
from loaderbench.gpu_checkup.records import CheckedDevice, CheckState, GpuCheck, TimedEvent
from loaderbench.records import Interval
from loaderbench.statistics.intervals import mean_interval, rate_interval

TOLERANCE = 0.03
LEAST_TOLERANCE_S = 50e-6
"""A launch takes some microseconds to reach the device, more under WSL, which is not an error of the clock."""

_CYCLES, _CALIBRATIONS, _WARM_UP_S = 10_000_000, 9, 0.5

GOAL_US = 5.0
LARGEST_SLOWDOWN = 0.01
_KERNEL_S = 1e-3
_STEPS, _PAIRS, _UNCOUNTED = 50, 24, 2


@dataclass(frozen=True)
class PlantedStep:
    """How long a step keeps the device busy, and how long the host then takes to load the next batch."""

    device_s: float
    load_s: float


IDLE = [PlantedStep(0.0, 0.02)] * 40
BUSY = [PlantedStep(0.02, 0.005)] * 40
MIXED = [PlantedStep(0.01, load_s) for load_s in (0.025, 0.004, 0.04, 0.018, 0.006, 0.03)] * 7

PLANTED = (
    ("wait_of_idle_device", "Wait of an idle GPU", IDLE),
    ("wait_of_busy_device", "Wait of a busy GPU", BUSY),
    ("wait_mixed", "Wait, mixed steps", MIXED),
)


@dataclass(frozen=True)
class KnownWait:
    """The wait of one step, by the host's clock and the kernels' times, and by loaderbench's clock."""

    expected_s: float
    found_s: float


def check_event_timer(device: CheckedDevice) -> tuple[GpuCheck, float]:
    """Compare kernel times by events and by the host; also return the device's cycles per second."""
    device.synchronize()
    began_s = device.now_s()
    while device.now_s() - began_s < _WARM_UP_S:  # until the GPU has raised its clock rate
        _timed_spin(device, _CYCLES)
    spins = [_timed_spin(device, _CYCLES) for _ in range(_CALIBRATIONS)]
    event_s, host_s = (median(values) for values in zip(*spins, strict=True))
    rate_hz = _CYCLES / event_s
    state: CheckState = "passed" if abs(event_s - host_s) <= _tolerance_s(host_s) else "failed"
    check = GpuCheck(
        id="event_timer",
        title="Event timer",
        state=state,
        said=f"{event_s * 1e3:.2f} ms by events, {host_s * 1e3:.2f} ms by the host's clock",
        expected={"kernel_s": host_s, "tolerance_s": _tolerance_s(host_s)},
        found={"kernel_s": mean_interval([spin[0] for spin in spins]), "cycles_per_s": rate_hz},
    )
    return check, rate_hz


def _timed_spin(device: CheckedDevice, cycles: int) -> tuple[float, float]:
    """Return the seconds of one kernel, by events and by the host."""
    began, ended = device.event(), device.event()
    began_s = device.now_s()
    began.record()
    device.spin(cycles)
    ended.record()
    ended.synchronize()
    return began.elapsed_time(ended) / 1e3, device.now_s() - began_s


def check_waits(device: CheckedDevice, rate_hz: float, id_: str, title: str, steps: Sequence[PlantedStep]) -> GpuCheck:
    """Plant waits and judge the average error per step."""
    waits, step_s = known_waits(device, rate_hz, steps)
    errors_s = [wait.found_s - wait.expected_s for wait in waits]
    error_s, tolerance_s = _typical(errors_s), _tolerance_s(step_s)
    expected_s, found_s = mean(wait.expected_s for wait in waits), mean(wait.found_s for wait in waits)
    off = f"{error_s * 1e3:+.2f} ms ({error_s / step_s:+.1%} of a step; at most {tolerance_s / step_s:.1%})"
    return GpuCheck(
        id=id_,
        title=title,
        state="passed" if abs(error_s) <= tolerance_s else "failed",
        said=f"{found_s * 1e3:.2f} ms per step, planted {expected_s * 1e3:.2f} ms; error {off}",
        expected={"wait_s": expected_s, "tolerance_s": tolerance_s, "step_s": step_s},
        found={
            "wait_s": mean_interval([wait.found_s for wait in waits]),
            "error_s": error_s,
            "largest_error_s": max(errors_s, key=abs),
        },
    )


def _typical(errors_s: Sequence[float]) -> float:
    """The mean without the largest and the smallest tenth, which drops steps that the system interrupted."""
    least = len(errors_s) // 10
    return mean(sorted(errors_s)[least : len(errors_s) - least])


def known_waits(device: CheckedDevice, rate_hz: float, steps: Sequence[PlantedStep]) -> tuple[list[KnownWait], float]:
    """Run the steps as a training loop does; return each step's wait and the mean step time.

    The expected wait is the host's loading time after the device has drained. The device drains when its kernels end. A
    kernel begins at its launch, or at the end of the previous kernel.
    """
    clock = device.wait_clock()
    kernels: list[tuple[TimedEvent, TimedEvent] | None] = [
        (device.event(), device.event()) if step.device_s else None for step in steps
    ]
    moments: list[tuple[float, float, float]] = []
    device.synchronize()
    began_s = device.now_s()
    for step, kernel in zip(steps, kernels, strict=True):
        launched_s = device.now_s()
        if kernel is not None:
            kernel[0].record()
            device.spin(round(step.device_s * rate_hz))
            kernel[1].record()
        clock.ask()
        asked_s = device.now_s()
        device.sleep(step.load_s)
        moments.append((launched_s, asked_s, device.now_s()))
        clock.got()
    device.synchronize()
    step_s = (device.now_s() - began_s) / len(steps)
    spins_s = [kernel[0].elapsed_time(kernel[1]) / 1e3 if kernel else 0.0 for kernel in kernels]
    return _compare(moments, spins_s, clock.waits_s()), step_s


def _compare(
    moments: Sequence[tuple[float, float, float]], spins_s: Sequence[float], found_s: Sequence[float]
) -> list[KnownWait]:
    drained_s, waits = 0.0, []
    for (launched_s, asked_s, got_s), spin_s, wait_s in zip(moments, spins_s, found_s, strict=True):
        if spin_s:
            drained_s = max(launched_s, drained_s) + spin_s
        waits.append(KnownWait(max(0.0, got_s - max(asked_s, drained_s)), wait_s))
    return waits


def _tolerance_s(step_s: float) -> float:
    return max(TOLERANCE * step_s, LEAST_TOLERANCE_S)


def check_overhead(device: CheckedDevice, rate_hz: float) -> list[GpuCheck]:
    """Run interleaved blocks of steps with and without the clock, and compare each block with its neighbor."""
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
    return [_host_check(host_us), _device_check(ratios, mean(steps_s))]


def _block(device: CheckedDevice, cycles: int, clock: WaitClock | None) -> tuple[float, float]:
    """Seconds per step that the host took to queue, and that the device took. The queue never fills up.

    A kernel before the steps keeps the device busy while the host queues the first step.
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


def _host_check(values_us: list[float]) -> GpuCheck:
    cost = mean_interval(values_us)
    least = cost.est if cost.lo is None else cost.lo
    state: CheckState = "warning" if least > GOAL_US else "passed"
    return GpuCheck(
        id="clock_overhead_host",
        title="Clock overhead, host",
        state=state,
        said=f"{_with_interval(cost, '.1f')} µs per step; goal: at most {GOAL_US:g} µs",
        expected={"at_most_us": GOAL_US},
        found={"overhead_us": cost},
    )


def _device_check(ratios: list[float], step_s: float) -> GpuCheck:
    ratio = rate_interval(ratios)
    least = ratio.est if ratio.lo is None else ratio.lo
    state: CheckState = "failed" if least > 1 + LARGEST_SLOWDOWN else "passed"
    measurable = "slower, measurably" if least > 1 else "no measurable change"
    return GpuCheck(
        id="clock_overhead_device",
        title="Clock overhead, GPU",
        state=state,
        said=f"step time {_with_interval(ratio, '.4f')}\N{MULTIPLICATION SIGN} of {step_s * 1e3:.2f} ms, {measurable}; "
        f"at most {1 + LARGEST_SLOWDOWN:g}\N{MULTIPLICATION SIGN}",
        expected={"at_most_ratio": 1 + LARGEST_SLOWDOWN},
        found={"step_time_ratio": ratio, "step_s": step_s},
    )


def _with_interval(value: Interval, style: str) -> str:
    est = format(value.est, style)
    if value.lo is None or value.hi is None:
        return est
    return f"{est} ({format(value.lo, style)}\N{EN DASH}{format(value.hi, style)})"
