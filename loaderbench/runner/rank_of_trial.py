"""A rank's interaction with the other ranks of its trial: they meet, end together, and are compared."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Any

from loaderbench.consumers import Consumer, HostWaitClock, consumer_of
from loaderbench.consumers.device_clock import StepWaitClock
from loaderbench.loaders import Batches
from loaderbench.monitors import ProgramUse, use_of_ranks
from loaderbench.recorder import Measurement, NoBatchesError, Rules, Steps
from loaderbench.recorder.batches import table_of
from loaderbench.recorder.steps import RecentSteps, StepTimes
from loaderbench.runner.protocol import Phase, Result, TrialOrder
from loaderbench.runner.rank_counters import CountedConsumer, JointRules, RankCounters

WAITING = "waiting for the other ranks"
_HASHED_VALUES = 1_024  # values of each tensor


class AloneInTrial:
    """The only process of a trial, with no other ranks to wait for."""

    @property
    def own_use(self) -> Callable[[], ProgramUse] | None:
        """Returns the resource use of this program; `None` means this process and its children."""
        return None

    def meet(self) -> None:
        """Wait until every rank has reached this point."""

    def rules(self, own: Rules) -> Rules:
        """The rules for how long all ranks are measured."""
        return own

    def counted(self, consumer: Consumer) -> Consumer:
        """The consumer, which can be wrapped to count batches."""
        return consumer

    def leave(self, found: Measurement) -> None:
        """Take no more batches."""

    def added(self, result: Result, *_: Any) -> Result:
        """The result with the values that are compared between ranks."""
        return result


@dataclass
class RankOfTrial(AloneInTrial):
    """One of several ranks of a trial. `first_batch` is the fingerprint of its first batch."""

    order: TrialOrder
    pipe: Connection
    rank_counters: RankCounters
    rank: int
    first_batch: str = ""

    def meet(self) -> None:
        """Wait until every rank has reached this point."""
        import torch

        self.pipe.send(Phase(WAITING))
        torch.distributed.all_reduce(torch.zeros(1))

    def rules(self, own: Rules) -> JointRules:
        """The rules shared by all ranks."""
        return JointRules.of(own, self.rank_counters, self.rank)

    def counted(self, consumer: Consumer) -> CountedConsumer:
        """The consumer, wrapped to count its batches."""
        return CountedConsumer(consumer, self.rank_counters, self.rank, self._keep_first)

    def _keep_first(self, batch: Any) -> None:
        self.first_batch = fingerprint(batch)

    @property
    def own_use(self) -> Callable[[], ProgramUse]:
        """Returns the resource use of all ranks, which form one program."""
        return lambda: use_of_ranks([pid for pid in self.rank_counters.pids if pid])

    def leave(self, found: Measurement) -> None:
        """Take no more batches. Raises `NoBatchesError` if the other ranks wait for one."""
        kind = consumer_of(self.order.suite.consumer, self.order.consumer)
        if found.ended_early and kind.in_step and self.rank_counters.ranks > 1:
            taken = f"{found.warmup_batches + found.batches} batches"
            raise NoBatchesError(f"the loader ran out of data after {taken}; all ranks need the same number")
        self.rank_counters.leave(self.rank)

    def added(self, result: Result, consumer: Consumer, steps: Steps, batches: Batches) -> Result:
        """The result with the values that are compared between ranks."""
        times = _step_times(steps, result.measurement.warmup_batches) if _has_host_clock(consumer) else None
        return replace(result, steps=times, first_batch="" if batches.is_divided else self.first_batch)


def _has_host_clock(consumer: Consumer) -> bool:
    """Whether steps end by the host clock, with a host that does not run ahead of a device."""
    clock = consumer.wait_clock
    return isinstance(clock, HostWaitClock) or (isinstance(clock, StepWaitClock) and clock.is_of_host)


def _step_times(steps: Steps, warmup: int) -> StepTimes:
    recent = RecentSteps()
    recent.add(table_of(list(steps.rows(warmup))))
    return recent.take()


def fingerprint(batch: Any) -> str:
    """Hash of the first values of each tensor in a batch; empty without tensors."""
    from loaderbench.consumers.batch_parts import changed

    found = hashlib.sha1(usedforsecurity=False)
    counted = 0

    def add(tensor: Any) -> Any:
        nonlocal counted
        counted += 1
        found.update(tensor.detach().flatten()[:_HASHED_VALUES].double().cpu().numpy().tobytes())
        return tensor

    changed(batch, add)
    return found.hexdigest() if counted else ""
