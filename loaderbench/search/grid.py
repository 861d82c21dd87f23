"""Every configuration in every round, except those that would fail as another did."""

from __future__ import annotations

import random
from collections.abc import Sequence

from loaderbench.diagnosis.failures import ran_out_of_memory
from loaderbench.plan import Plan
from loaderbench.records import Config, PlannedTrial, Trial, config_label


class Grid:
    """A randomised block design: rounds are the blocks, and each shuffles all configurations anew.

    A drift of the machine then falls on all of them alike. Source: Fisher, The Design of Experiments, 1935.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._random = random.Random(plan.seed)
        self._round = 0

    def next_round(self) -> Sequence[PlannedTrial]:
        """Return each configuration once, shuffled, until the rounds are used up."""
        self._round += 1
        if self._round > self._plan.rounds:
            return []
        order = [self._plan.trial(config, self._round) for config in self._plan.configurations]
        if self._plan.with_twins:
            order.append(self._plan.twin(self._round))
        self._random.shuffle(order)
        return order

    def why_not(self, planned: PlannedTrial, done: Sequence[Trial]) -> str | None:
        """Prune what would run out of memory or hang as another did."""
        return why_pruned(planned.config, done)


_BATCH = "batch_size"


def why_pruned(config: Config, done: Sequence[Trial]) -> str | None:
    """Why a configuration is not tried; `None` where nothing speaks against it.

    One that hung or ran out of memory is not tried again, nor is the same with a larger batch after it ran out of it.
    What somebody else killed, as the kernel knows, says nothing of the next.
    """
    for trial in done:
        kind, no_room = trial.failure.kind if trial.failure else "", ran_out_of_memory(trial.failure)
        if trial.config == config and (kind == "hang" or no_room):
            return f"it failed in round {trial.round} ({_words(kind)})"
        if no_room and _is_larger(config, trial.config):
            return f"{config_label(trial.config)} failed ({_words(kind)}), and this batch is larger"
    return None


def _is_larger(config: Config, failed: Config) -> bool:
    """The same configuration with a larger batch."""
    mine, its = config.get(_BATCH), failed.get(_BATCH)
    others = {k: v for k, v in config.items() if k != _BATCH} == {k: v for k, v in failed.items() if k != _BATCH}
    return others and isinstance(mine, int) and isinstance(its, int) and mine > its


def _words(kind: str) -> str:
    return kind.replace("_", " ")
