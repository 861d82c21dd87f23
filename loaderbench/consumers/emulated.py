"""An emulated GPU with a given rate, and the CPU time that its training step takes away from the loader."""

from __future__ import annotations

import math
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from loaderbench.consumers.demand import DEFAULT_DEMAND, demand_from, demand_of_calibration, read_calibration
from loaderbench.consumers.kind import Clock, Consumer, ConsumerKind, HostWaitClock, OptionProblem
from loaderbench.consumers.training_rates import DEFAULT_MODEL, PRECISIONS, NoRateError, find_rate, gpus
from loaderbench.options import Amount
from loaderbench.records import AssumedDemand
from loaderbench.user_paths import expanded

_SAMPLES = f"Target in samples/s; {DEFAULT_DEMAND:,.0f} where neither this nor `accelerator` is set."
_GPU = "GPU to emulate at its published training rate."
_PRECISION = "Precision of the published rate; mixed precision by default, where it is known."

_HOST = "CPU time, in seconds per sample, that the training step takes from the loader in the main process."

_THREADS = "Threads of the main process that share `host_cpu_s_per_sample`, like OpenMP in a CPU training step."

_CALIBRATION = "File of a measured step, from `loaderbench export --to calibration`: emulates that GPU."

_BLOCKING = "Whether the loop waits for each step, as with `loss.item()`; otherwise, it runs about one step ahead."

IN_FLIGHT = 2  # a training loop that reads no result runs about one step ahead of its device

REGION_S = 0.001
"""Duration of one parallel region: about that of one operator of a training step on the CPU."""

_COMPUTED = bytes(1 << 16)


class EmulatedAccelerator:
    """A device that takes `fixed_s + samples / demand` seconds per batch, in parallel with the host and not on its CPU.

    The queue is a list of the times at which its batches will be done. The host sleeps only while the queue is full, as
    in a training loop. A late wake-up delays no batch, because the device's time is computed rather than slept. `clock`
    is the device's, in seconds, and stops while the trial is stopped. `last_of_ranks` takes the time at which this
    device could start a step, and returns the time at which all ranks can. The only CPU time used is
    `host_s_per_sample`, divided among `host_threads`, for a host that computes or launches kernels. With `blocking`,
    the host also waits for each step, so a main process that loads by itself loads nothing meanwhile.
    """

    def __init__(
        self,
        demand: float,
        clock: Clock = time.monotonic,
        *,
        fixed_s: float = 0.0,
        host_s_per_sample: float = 0.0,
        host_threads: int = 1,
        blocking: bool = False,
        last_of_ranks: Callable[[float], float] = float,
    ) -> None:
        self._last_of_ranks, self._blocking = last_of_ranks, blocking
        self._demand, self._clock, self._fixed_s, self._host_s = demand, clock, fixed_s, host_s_per_sample
        self._host = ComputingThreads(host_threads)
        self._done_at_s: deque[float] = deque([0.0], maxlen=IN_FLIGHT)
        self.wait_clock = HostWaitClock(lambda: self._done_at_s[-1], clock)

    def consume(self, batch: Any, samples: int) -> None:
        """Queue the batch, after waiting for room; if blocking, wait until it is done."""
        room_at_s = self._done_at_s[0] if len(self._done_at_s) == IN_FLIGHT else 0.0
        start_s = self._last_of_ranks(max(self._clock(), self._done_at_s[-1]))
        if self._host_s:
            self._host.compute_for(self._host_s * samples)
        done_at_s = start_s + self._fixed_s + samples / self._demand
        self._sleep_until(done_at_s if self._blocking else room_at_s)
        self._done_at_s.append(done_at_s)

    def _sleep_until(self, at_s: float) -> None:
        while (pause_s := at_s - self._clock()) > 0:
            time.sleep(pause_s)


def last_of_ranks() -> Callable[[float], float]:
    """Return a function that gives the latest start time of all ranks of a trial, in seconds, by an all-reduce.

    Every rank calls the function once per step with its own start time. All ranks read the same clock. In a process
    without other ranks, the function returns its argument.
    """
    import torch
    from torch import distributed

    if not distributed.is_available() or not distributed.is_initialized() or distributed.get_world_size() == 1:
        return float

    def latest_s(own_s: float) -> float:
        found = torch.tensor(own_s, dtype=torch.float64)
        distributed.all_reduce(found, distributed.ReduceOp.MAX)
        return found.item()

    return latest_s


class Emulated(ConsumerKind):
    """Take samples at a given rate, or at the published rate of a GPU, and compute nothing."""

    who: ClassVar[str] = "emulated GPU"
    capped: ClassVar[bool] = True
    why_not_replayed: ClassVar[str] = "an emulated GPU copies nothing, and its ceiling is the target"
    auto: ClassVar[Literal["accelerator", "host"] | None] = "host"
    asked_for_by: ClassVar[tuple[str, ...]] = ("accelerator", "calibration")
    texts: ClassVar[tuple[str, ...]] = ("accelerator", "model", "precision", "calibration")

    demand: Annotated[Amount | None, Field(description=_SAMPLES)] = None
    accelerator: Annotated[str | None, Field(description=_GPU, examples=gpus())] = None
    model: str = DEFAULT_MODEL
    precision: Annotated[str | None, Field(description=_PRECISION, examples=[*PRECISIONS])] = None
    calibration: Annotated[str | None, Field(description=_CALIBRATION)] = None
    host_cpu_s_per_sample: Annotated[Amount | None, Field(description=_HOST)] = None
    host_threads: Annotated[int, Field(description=_THREADS, ge=1)] = 1
    blocking: Annotated[bool, Field(description=_BLOCKING)] = False

    @property
    def in_step(self) -> bool:
        """True: each step begins when all ranks have their batch."""
        return True

    def assumed_demand(self, folder: Path) -> AssumedDemand:
        """The rate at which it takes samples.

        Raises `NoRateError` if no rate is published, and `MissingError` for a calibration that cannot be read.
        """
        if self.calibration is not None:
            return demand_of_calibration(read_calibration(folder / expanded(self.calibration)))
        return demand_from(self.demand, self.accelerator, self.model, self.precision)

    def problems(self, *, chosen: bool) -> Iterator[OptionProblem]:
        """Yield conflicts between options that set the demand, and a rate that is not published."""
        others = [name for name in ("accelerator", "demand") if getattr(self, name) is not None]
        if self.calibration is not None and others:
            what = f"cannot be combined with `{others[0]}`: both set the target; drop one of them"
            yield OptionProblem("calibration", what, at_key=True)
        if self.accelerator is None:
            if chosen and self.precision is not None:
                what = "has no effect without `accelerator`; set both, or drop it"
                yield OptionProblem("precision", what, at_key=True)
            return
        if self.demand is not None:
            what = "cannot be combined with `demand`: both set the target; drop one of them"
            yield OptionProblem("accelerator", what, at_key=True)
        try:
            find_rate(self.accelerator, self.model, self.precision)
        except NoRateError as error:
            yield OptionProblem(error.option, str(error))

    def make(self, config: Mapping[str, Any], folder: Path, clock: Clock) -> Consumer:
        """Create the device."""
        host_s = self.host_cpu_s_per_sample or 0.0
        device = partial(
            EmulatedAccelerator,
            clock=clock,
            host_s_per_sample=host_s,
            host_threads=self.host_threads,
            blocking=self.blocking,
            last_of_ranks=last_of_ranks(),
        )
        if self.calibration is not None:
            found = read_calibration(folder / expanded(self.calibration))
            rate = 1 / found.s_per_sample if found.s_per_sample else math.inf
            return device(rate, fixed_s=found.fixed_s)
        return device(self.assumed_demand(folder).samples_per_s)


def compute_for(cpu_s: float) -> None:
    """Use this much CPU time in this thread without blocking other threads: the checksum releases the GIL."""
    until_s = time.thread_time() + cpu_s
    while time.thread_time() < until_s:
        zlib.crc32(_COMPUTED)


class ComputingThreads:
    """The calling thread and `count - 1` others, which share a computation like OpenMP threads.

    They compute in regions that all threads end together: a finished thread spins until the others are done. On CPUs
    that workers also use, each region takes as long as its slowest thread. Between calls the other threads sleep.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._regions_ended = [0] * count
        self._regions, self._region_s = 0, 0.0
        self._begin = threading.Barrier(count)
        for number in range(1, count):
            threading.Thread(target=self._helper_loop, args=(number,), daemon=True).start()

    def compute_for(self, cpu_s: float) -> None:
        """Use this much CPU time in all threads together, plus the time they spin."""
        if self._count == 1:
            compute_for(cpu_s)
            return
        self._regions_ended = [0] * self._count
        self._regions = math.ceil(cpu_s / self._count / REGION_S)
        self._region_s = cpu_s / self._count / max(1, self._regions)
        self._begin.wait()
        self._take_part(0)

    def _helper_loop(self, number: int) -> None:
        while True:
            self._begin.wait()
            self._take_part(number)

    def _take_part(self, number: int) -> None:
        ended = self._regions_ended
        for region in range(1, self._regions + 1):
            compute_for(self._region_s)
            ended[number] = region
            while min(ended) < region:
                zlib.crc32(_COMPUTED)
