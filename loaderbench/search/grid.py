"""Measures every configuration in every round, except those that would fail as another did."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

from loaderbench.diagnosis.failures import TOO_MANY_FILES, TOO_MANY_PROCESSES, ran_out_of_memory
from loaderbench.loaders import backend_of
from loaderbench.loaders.worker_options import SHARING
from loaderbench.plan import Plan
from loaderbench.ranks import RANKS
from loaderbench.records import Config, Dropped, PlannedTrial, Trial, config_label, in_bytes

BytesOf = Callable[[Config], "int | None"]
"""Bytes of a configuration's batches in shared memory at once; `None` if unknown."""


class Grid:
    """A randomized block design: rounds are the blocks, and each shuffles all configurations again.

    A drift of the machine then affects all of them alike. `bytes_of` predicts which configurations do not fit.
    Source: Fisher, The Design of Experiments, 1935.
    """

    def __init__(self, plan: Plan, bytes_of: BytesOf = lambda _: None) -> None:
        self._plan, self._bytes_of = plan, bytes_of
        self._random = random.Random(plan.seed)
        self._round = 0

    def next_round(self, known: Sequence[Trial] = (), room: float = math.inf) -> Sequence[PlannedTrial]:  # noqa: ARG002
        """Return each configuration once, shuffled, until the rounds are used up.

        `known` are the trials of the sweep so far, including those of an earlier call; `room` is how many more trials
        fit in its time. An adaptive search uses both.
        """
        self._round += 1
        if self._round > self._plan.rounds:
            return []
        order = [self._plan.trial(config, self._round) for config in self._plan.configurations]
        if self._plan.with_twins:
            order.append(self._plan.twin(self._round))
        self._random.shuffle(order)
        return order

    def dropped(self, known: Sequence[Trial], why_short: str = "") -> tuple[Dropped, ...]:  # noqa: ARG002
        """The dropped configurations: none."""
        return ()

    def why_not(self, planned: PlannedTrial, done: Sequence[Trial]) -> str | None:
        """Why a trial is pruned: it would run out of memory or hang as another did.

        A short hang is retried once, since stalled storage may have recovered.
        """
        counted = [trial for trial in done if not _may_recover(trial, done)]
        return why_pruned(planned.config, counted, self._bytes_of)


BRIEF_HANG_S = 60.0
"""A hang shorter than this is retried once."""


def _may_recover(trial: Trial, done: Sequence[Trial]) -> bool:
    hung = [other for other in done if other.config == trial.config and other.failure and other.failure.kind == "hang"]
    return hung == [trial] and trial.duration_s is not None and trial.duration_s < BRIEF_HANG_S


_NEEDS = ("batch_size", "num_workers", "prefetch_factor", RANKS)
"""Memory and shared memory grow with all of these."""

_GROW = {
    "device_memory": ("batch_size",),
    TOO_MANY_FILES: ("num_workers", "prefetch_factor"),
    TOO_MANY_PROCESSES: ("num_workers", RANKS),
}
"""Other resources that can run out, and the options that increase their use."""


def why_pruned(config: Config, done: Sequence[Trial], bytes_of: BytesOf = lambda _: None) -> str | None:
    """Why a configuration is not tried; `None` if it can be tried.

    A configuration that hung, or ran out of memory, files or processes, is not retried. After an out-of-memory failure,
    neither is the same configuration with larger batches, more workers or more prefetched batches. After a
    shared-memory failure, neither is any configuration that needs at least as many bytes. After too many open files,
    another sharing strategy may still be tried. A process that was killed by anything but the out-of-memory killer
    rules out no configuration.
    """
    own_bytes = bytes_of(config)
    for trial in done:
        kind, no_room = trial.failure.kind if trial.failure else "", ran_out_of_memory(trial.failure)
        fails_again = no_room or kind in ("hang", TOO_MANY_FILES, TOO_MANY_PROCESSES)
        if kind == TOO_MANY_FILES and config.get(SHARING) != trial.config.get(SHARING):
            continue
        if trial.config == config and fails_again:
            return f"it failed in round {trial.round} ({_words(kind)})"
        if fails_again and kind != "hang" and _needs_more(config, trial.config, _GROW.get(kind, _NEEDS)):
            return f"{config_label(trial.config)} failed ({_words(kind)}), and this needs at least as much"
        its_bytes = bytes_of(trial.config) if kind == "shared_memory_full" else None
        if own_bytes and its_bytes and own_bytes >= its_bytes and trial.config != config:
            return f"{config_label(trial.config)} failed ({_words(kind)}), and this needs {in_bytes(own_bytes)}"
    return None


def _needs_more(config: Config, failed: Config, grow: Sequence[str]) -> bool:
    """Whether `config` needs at least what `failed` did: equal or larger in `grow`, and otherwise the same.

    Options of worker setup can differ, because they do not change a batch.
    """
    apart = {*grow, *backend_of(config).worker_options}
    mine, its = ({k: v for k, v in one.items() if k not in apart} for one in (config, failed))
    pairs = [(config.get(name), failed.get(name)) for name in grow if config.get(name) != failed.get(name)]
    more = [isinstance(here, int) and isinstance(there, int) and here > there for here, there in pairs]
    return mine == its and config != failed and all(more)


def _words(kind: str) -> str:
    return kind.replace("_", " ")
