"""Every configuration in every round."""

from __future__ import annotations

import random
from collections.abc import Sequence

from loaderbench.plan import Plan
from loaderbench.records import PlannedTrial, Trial
from loaderbench.search.pruning import why_pruned


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
