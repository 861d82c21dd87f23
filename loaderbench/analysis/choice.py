"""Which configuration to use, out of those that cannot be told apart, and what it is worth against today's."""

from __future__ import annotations

import math
from collections.abc import Sequence

from loaderbench.analysis.configurations import rates_by_round, ratio_of
from loaderbench.analysis.intervals import FEWEST_ROUNDS
from loaderbench.analysis.why_chosen import why_chosen
from loaderbench.records import Baseline, Best, Config, Configuration, Scalar, Trial

_SIGNIFICANT = 2  # digits of a memory reading that count when two configurations are compared


def choose_best(
    configurations: Sequence[Configuration], baseline: Config, trials: Sequence[Trial], planned_rounds: int
) -> tuple[Best | None, str]:
    """Pick the cheapest of the fastest, or say why there is none to pick.

    Cheap is: fewest workers, then least accelerator memory, then least host memory, then the earlier in the sweep.
    """
    tied = [found for found in configurations if found.tied_with_best]
    chosen = min(tied, key=_cost, default=None)
    if chosen is None or chosen.samples_per_s is None:
        return None, _no_winner(configurations, trials, planned_rounds)
    gain = None if chosen.config == baseline else ratio_of(chosen.config, baseline, trials)
    return Best(
        config=chosen.config,
        samples_per_s=chosen.samples_per_s,
        data_wait_share=chosen.data_wait_share,
        ties=tuple(found.config for found in tied if found is not chosen),
        why_this_one=why_chosen(chosen, configurations, trials),
        gain=gain,
        not_measured={} if gain else {"gain": _no_gain(chosen.config, baseline)},
    ), ""


def describe_baseline(configurations: Sequence[Configuration], config: Config, why: str) -> Baseline:
    """Describe the configuration the user has today, measured like any other."""
    found = next((c for c in configurations if c.config == config), None)
    return Baseline(
        config=config,
        samples_per_s=found.samples_per_s if found else None,
        data_wait_share=found.data_wait_share if found else None,
        why_this_one=why,
        not_measured={k: v for k, v in (found.not_measured if found else {}).items() if k in Baseline.__annotations__},
    )


def _cost(found: Configuration) -> tuple[float, ...]:
    workers: Scalar = found.config.get("num_workers", 0)
    batch: Scalar = found.config.get("batch_size", 0)
    return (
        float(workers) if isinstance(workers, int | float) else 0.0,
        _rounded(found.gpu_memory_used_bytes),
        float(batch) if isinstance(batch, int | float) and found.gpu_memory_used_bytes is None else 0.0,
        _rounded(found.pss_bytes),
    )


def _rounded(size: int | None) -> float:
    """Readings that differ by a few per cent are the same cost."""
    return 0.0 if not size else round(size, _SIGNIFICANT - 1 - math.floor(math.log10(size)))


def _no_winner(configurations: Sequence[Configuration], trials: Sequence[Trial], planned_rounds: int) -> str:
    rounds = max((len(rates_by_round(found.config, trials)) for found in configurations), default=0)
    if not rounds:
        return "no configuration was measured"
    if planned_rounds < FEWEST_ROUNDS:
        return f"n = {rounds}: fewer than {FEWEST_ROUNDS} rounds name no winner; measure with --rounds 3 or more"
    return f"n = {rounds}: no configuration was completed in {FEWEST_ROUNDS} rounds"


def _no_gain(config: Config, baseline: Config) -> str:
    return "it is the baseline itself" if config == baseline else "no round holds both it and the baseline"
