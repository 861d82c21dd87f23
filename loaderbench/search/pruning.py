"""Which configurations need not be tried any more: those that would end as another did."""

from __future__ import annotations

from collections.abc import Sequence

from loaderbench.diagnosis.failures import ran_out_of_memory
from loaderbench.records import Config, Trial, config_label

_BATCH = "batch_size"


def why_pruned(config: Config, done: Sequence[Trial]) -> str | None:
    """Why a configuration is not tried; `None` where nothing speaks against it.

    One that hung or ran out of memory is not tried again, nor is the same with a larger batch after it ran out of it.
    What somebody else killed, as the kernel knows, says nothing of the next.
    """
    for trial in done:
        kind, no_room = trial.failure.kind if trial.failure else "", ran_out_of_memory(trial.failure)
        if trial.config == config and (kind == "hang" or no_room):
            return f"it failed in round {trial.round} ({_words(kind)}) and would again"
        if no_room and _is_larger(config, trial.config):
            return f"{config_label(trial.config)} failed already ({_words(kind)}), and this batch is larger"
    return None


def _is_larger(config: Config, failed: Config) -> bool:
    """The same configuration with a larger batch."""
    mine, its = config.get(_BATCH), failed.get(_BATCH)
    others = {k: v for k, v in config.items() if k != _BATCH} == {k: v for k, v in failed.items() if k != _BATCH}
    return others and isinstance(mine, int) and isinstance(its, int) and mine > its


def _words(kind: str) -> str:
    return kind.replace("_", " ")
