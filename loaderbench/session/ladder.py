"""Which parts are taken away from which configuration, and the orders for it."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from loaderbench.diagnosis.subject import subject_config
from loaderbench.plan import Plan, PlannedTrial, rung_seconds, rungs_left_out
from loaderbench.recorder.rules import FEWEST_BATCHES, MIN_BATCHES
from loaderbench.records import Config, Reasons, RungName, Trial
from loaderbench.runner import TrialOrder
from loaderbench.statistics.choice import choose_best
from loaderbench.statistics.configurations import rates_by_round, summarise
from loaderbench.suite import Suite

FILES_SHARE = 8
"""So many times the files that end to end reads in a rung's window: warm-up and a loader alone, which may be faster."""

TORCH_PREFETCHES = 2  # batches per worker, where nothing else is asked for


@dataclass(frozen=True)
class LadderPlan:
    """The trials of the ladder in the order to be run, and why other rungs are left out."""

    trials: tuple[PlannedTrial, ...] = ()
    left_out: Reasons = field(default_factory=dict)


class Ladder:
    """Plans the ladder of a suite once its sweep is measured."""

    def __init__(self, suite: Suite, plan: Plan, *, consumer: str, accelerator: bool, files: int) -> None:
        self._suite, self._plan, self._files = suite, plan, files
        self._consumer, self._accelerator = consumer, accelerator

    def plan(self, trials: Sequence[Trial]) -> LadderPlan:
        """The rungs of the verdict's configuration, shuffled within each round like everything else."""
        configurations = summarise(self._plan.configurations, trials)
        best, _ = choose_best(configurations, self._plan.baseline, trials, self._plan.rounds)
        config = subject_config(best, configurations)
        if config is None:
            return LadderPlan(left_out={"ladder": "nothing was measured"})
        files = self._files_read(config, trials)
        reasons: dict[RungName, str] = rungs_left_out(self._suite, self._consumer, self._accelerator)
        reasons["loader_cold"] = reasons["loader_cold"] or self._too_small(config, files)
        if reasons["loader_cold"] and self._consumer == "none" and self._suite.measure.cache == "warm":
            reasons["loader_warm"] = "the sweep's own trials are the loader alone"
        names = [name for name, why in reasons.items() if not why]
        order = random.Random(self._plan.seed)
        planned = []
        for number in range(1, self._plan.ladder_rounds + 1):
            order.shuffle(names)
            planned += [self._plan.rung(name, config, number, files) for name in names]
        return LadderPlan(tuple(planned), {name: why for name, why in reasons.items() if why})

    def _files_read(self, config: Config, trials: Sequence[Trial]) -> int:
        """How many files the loader alone reads: warm and cold the same, few enough to be read again for a rung."""
        rate = max(rates_by_round(config, trials).values(), default=0.0)
        wanted = FILES_SHARE * rate * rung_seconds(self._suite) + self._ahead(config) + MIN_BATCHES * self._size(config)
        return min(self._files, math.ceil(wanted))

    def _too_small(self, config: Config, files: int) -> str:
        """Why one pass over the files, of which none may be read twice, is no steady state."""
        batches, ahead = files // self._size(config), self._ahead(config) // self._size(config)
        if batches > max(1, ahead) + FEWEST_BATCHES:
            return ""
        return (
            f"one pass over {files:,} files is {batches} batch{'es' * (batches != 1)}, and workers read {ahead} ahead: "
            "too few for a steady state, and a second pass would find them in memory"
        )

    def _ahead(self, config: Config) -> int:
        """Samples that workers read ahead."""
        workers, prefetch = self._argument("num_workers", config, 0), self._argument("prefetch_factor", config, None)
        return workers * (prefetch or TORCH_PREFETCHES) * self._size(config)

    def _size(self, config: Config) -> int:
        return self._argument("batch_size", config, 1) or 1

    def _argument(self, name: str, config: Config, default: int | None) -> int:
        found = config.get(name, self._suite.loader.get(name, default))
        return found if isinstance(found, int) else 0


def order_of(order: TrialOrder) -> TrialOrder:
    """The order of a rung: a shorter steady state, and for the loader alone no consumer and a sample of the files."""
    planned, suite = order.planned, order.suite
    order = order.lasting(rung_seconds(suite))
    if planned.rung not in ("loader_warm", "loader_cold"):
        return order
    samples = order.samples
    if planned.files is not None and planned.files < len(samples):
        chosen = random.Random(suite.measure.seed + planned.round).sample(range(len(samples)), planned.files)
        samples = tuple(samples[index] for index in sorted(chosen))
    return replace(order, samples=samples, consumer="none")
