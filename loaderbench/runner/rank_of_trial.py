"""What a rank does together with the others of its trial: meets them, ends with them, and is compared with them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Any

from loaderbench.consumers import Consumer, HostWaitClock, consumer_of
from loaderbench.loaders import Batches
from loaderbench.monitors import ProgramUse, use_of_ranks
from loaderbench.recorder import Measurement, NoBatchesError, Rules, Steps
from loaderbench.recorder.batches import table_of
from loaderbench.recorder.steps import RecentSteps, StepTimes
from loaderbench.runner.protocol import Phase, Result, TrialOrder
from loaderbench.runner.rank_counters import CountedConsumer, JointRules, RankCounters

WAITING = "waiting for the other ranks"
_LOOKED_AT = 1_024  # numbers of each tensor


class AloneInTrial:
    """A trial's only process, which has no other rank to wait for."""

    @property
    def own_use(self) -> Callable[[], ProgramUse] | None:
        """What this program uses; `None` for this process and those below it."""
        return None

    def meet(self) -> None:
        """Wait until every rank is here."""

    def rules(self, own: Rules) -> Rules:
        """How long all ranks are measured."""
        return own

    def counted(self, consumer: Consumer) -> Consumer:
        """The consumer, which may count its batches."""
        return consumer

    def leave(self, found: Measurement) -> None:
        """Take no more batches."""

    def added(self, result: Result, *_: Any) -> Result:
        """The result with what is compared between ranks."""
        return result


@dataclass
class RankOfTrial(AloneInTrial):
    """What a rank does together with the others of its trial. `first_batch` is the fingerprint of its first batch."""

    order: TrialOrder
    pipe: Connection
    rank_counters: RankCounters
    rank: int
    first_batch: str = ""

    def meet(self) -> None:
        """Wait until every rank is here."""
        import torch

        self.pipe.send(Phase(WAITING))
        torch.distributed.all_reduce(torch.zeros(1))

    def rules(self, own: Rules) -> JointRules:
        """Those of all ranks."""
        return JointRules.of(own, self.rank_counters, self.rank)

    def counted(self, consumer: Consumer) -> CountedConsumer:
        """The same consumer, whose batches are counted."""
        return CountedConsumer(consumer, self.rank_counters, self.rank, self._keep_first)

    def _keep_first(self, batch: Any) -> None:
        self.first_batch = fingerprint(batch)

    @property
    def own_use(self) -> Callable[[], ProgramUse]:
        """That of all ranks, which are one program."""
        return lambda: use_of_ranks([pid for pid in self.rank_counters.pids if pid])

    def leave(self, found: Measurement) -> None:
        """Take no more batches. Raises `NoBatchesError` where the others wait for one."""
        kind = consumer_of(self.order.suite.consumer, self.order.consumer)
        if found.ended_early and kind.in_step and self.rank_counters.ranks > 1:
            taken = f"{found.warmup_batches + found.batches} batches"
            raise NoBatchesError(f"the loader ran out of data after {taken}; all ranks need the same number")
        self.rank_counters.leave(self.rank)

    def added(self, result: Result, consumer: Consumer, steps: Steps, batches: Batches) -> Result:
        """The result with what is compared between ranks."""
        times = _step_times(steps, result.measurement.warmup_batches) if _by_host(consumer) else None
        return replace(result, steps=times, first_batch="" if batches.is_divided else self.first_batch)


def _by_host(consumer: Consumer) -> bool:
    """Whether steps end by the clock of the host, which does not run ahead of a device."""
    return isinstance(consumer.wait_clock, HostWaitClock)


def _step_times(steps: Steps, warmup: int) -> StepTimes:
    recent = RecentSteps()
    recent.add(table_of(list(steps.rows(warmup))))
    return recent.take()


def fingerprint(batch: Any) -> str:
    """Of the beginning of a batch; empty where it holds no tensor."""
    from loaderbench.consumers.batch_parts import changed

    found = hashlib.sha1(usedforsecurity=False)
    counted = 0

    def add(tensor: Any) -> Any:
        nonlocal counted
        counted += 1
        found.update(tensor.detach().flatten()[:_LOOKED_AT].double().cpu().numpy().tobytes())
        return tensor

    changed(batch, add)
    return found.hexdigest() if counted else ""
