"""Cost of recording a training loop, compared with torch.profiler, cProfile and TraceML: for `overhead.py`."""

from __future__ import annotations

import cProfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from itertools import islice, repeat
from typing import Any

import torch
from overhead_pairs import Block, Rounds, Spent, cpu, spent
from overhead_traceml import TraceML

from loaderbench import Profiler

STEP_S = 0.8e-3
BLOCK_STEPS = 256  # the profiler aggregates this many rows at once, so each block includes the same share of that work
EMPTY_BATCHES = 20_000
WIDTH = 0.008
OURS, BARE, TIMER = "Profiler", "bare", "timing generator"


class Step:
    """Forward, backward and optimizer step of a small network, with a batch of `rows` rows."""

    def __init__(self, rows: int) -> None:
        layers = [torch.nn.Linear(64, 384), torch.nn.ReLU(), torch.nn.Linear(384, 384), torch.nn.ReLU()]
        self.model = torch.nn.Sequential(*layers, torch.nn.Linear(384, 10))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-5)
        self.batch = torch.randn(rows, 64), torch.randint(10, (rows,))

    def __call__(self, batch: Any) -> None:
        """Train on a batch."""
        inputs, labels = batch
        self.optimizer.zero_grad()
        torch.nn.functional.cross_entropy(self.model(inputs), labels).backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()

    def took_s(self) -> float:
        """CPU seconds of the fastest of several steps."""
        return min(spent(lambda: self(self.batch)).cpu_s for _ in range(12))


def empty_loop(rounds: int, warm_up_s: float) -> Rounds:
    """An empty loop over ready batches: a list that repeats one batch."""
    ready = [(torch.zeros(4, 2), torch.zeros(4))] * EMPTY_BATCHES
    taken = Rounds(EMPTY_BATCHES)
    with Profiler(trace=False) as profiler:
        recorded = profiler.iter(ready)
        contestants = {
            BARE: lambda: spent(lambda: drain(ready)),
            TIMER: lambda: spent(lambda: drain(timed(ready))),
            OURS: lambda: spent(lambda: drain(recorded)),
        }
        warm_up(contestants, warm_up_s)
        for _ in range(rounds):
            taken.take(contestants)
    return taken


def training_loop(rival_rounds: int, limit_s: float, warm_up_s: float) -> tuple[Rounds, str]:
    """Rounds of all contestants, then pairs until their interval is narrow; also return why TraceML is missing."""
    step, taken = step_of(STEP_S), Rounds(BLOCK_STEPS)
    with ExitStack() as stack:
        traceml = stack.enter_context(TraceML(step, BLOCK_STEPS))
        profiler = stack.enter_context(Profiler(trace=False))
        recorded = iter(profiler.iter(repeat(step.batch)))
        pair: dict[str, Block] = {
            BARE: lambda: spent(lambda: train(step, repeat(step.batch))),
            OURS: lambda: spent(lambda: train(step, recorded)),
        }
        rivals = {"torch.profiler": lambda: torch_profiler(step), "cProfile": lambda: c_profile(step)}
        rivals |= {"TraceML": traceml.block} if not traceml.why_not else {}
        warm_up(pair | rivals, warm_up_s)
        for _ in range(rival_rounds):
            taken.take(pair | rivals)
        until_narrow(taken, pair, limit_s)
        recorded.close()
    return taken, traceml.why_not


def step_of(seconds: float) -> Step:
    """The step whose duration on one thread of this machine is closest to `seconds`."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    torch.manual_seed(0)
    return min((Step(rows) for rows in range(8, 260, 4)), key=lambda step: abs(step.took_s() - seconds))


def until_narrow(taken: Rounds, pair: dict[str, Block], limit_s: float) -> None:
    ends_s = time.monotonic() + limit_s
    while time.monotonic() < ends_s and taken.kept(OURS, BARE, cpu).width >= WIDTH:
        for _ in range(5):
            taken.take(pair)


def warm_up(contestants: dict[str, Block], seconds: float) -> None:
    """Warm up. One second is enough: within it, the profiler makes its only reading of proportional memory."""
    for block in contestants.values():
        ends_s = time.monotonic() + seconds
        while time.monotonic() < ends_s:
            block()


def drain(batches: Iterable[object]) -> None:
    for _ in batches:
        pass


def timed(ready: Iterable[Any]) -> Iterator[Any]:
    """The minimum that a user would write to time a loader."""
    batches, now_s, waits_s = iter(ready), time.perf_counter, []
    while True:
        asked_s = now_s()
        try:
            batch = next(batches)
        except StopIteration:
            return
        waits_s.append(now_s() - asked_s)
        yield batch


def train(step: Step, batches: Iterable[Any]) -> None:
    for batch in islice(batches, BLOCK_STEPS):
        step(batch)


def torch_profiler(step: Step) -> Spent:
    """Run under torch.profiler, whose start and stop are not counted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
            return spent(lambda: train_and_tell(step, profiler.step))


def train_and_tell(step: Step, told: Callable[[], None]) -> None:
    for batch in islice(repeat(step.batch), BLOCK_STEPS):
        step(batch)
        told()


def c_profile(step: Step) -> Spent:
    with cProfile.Profile():
        return spent(lambda: train(step, repeat(step.batch)))
