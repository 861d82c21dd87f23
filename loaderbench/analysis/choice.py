"""Which configuration to use, out of those that cannot be told apart, and what it is worth against today's."""

from __future__ import annotations

import math
from collections.abc import Sequence

from loaderbench.analysis.configurations import rates_by_round, ratio_of
from loaderbench.analysis.intervals import FEWEST_ROUNDS
from loaderbench.records import Baseline, Best, Config, Configuration, Scalar, Trial, config_label

_SIGNIFICANT = 2  # digits of a memory reading that count when two configurations are compared


def choose_best(
    configurations: Sequence[Configuration], baseline: Config, trials: Sequence[Trial]
) -> tuple[Best | None, str]:
    """Pick the cheapest of the fastest, or say why there is none to pick.

    Cheap is: fewest workers, then least accelerator memory, then least host memory, then the earlier in the sweep.
    """
    measured = [found for found in configurations if found.samples_per_s is not None]
    if not measured:
        return None, "no configuration was measured"
    top = min(measured, key=lambda found: found.rank or 0)
    rounds = len(rates_by_round(top.config, trials))
    if rounds < FEWEST_ROUNDS:
        return None, f"n = {rounds}: fewer than {FEWEST_ROUNDS} rounds name no winner; measure with --rounds 3 or more"
    tied = [found for found in measured if found.tied_with_best]
    chosen = min(tied, key=_cost)
    if chosen.samples_per_s is None:  # for the type checker: `measured` holds none such
        return None, "no configuration was measured"
    gain = None if chosen.config == baseline else ratio_of(chosen.config, baseline, trials)
    return Best(
        config=chosen.config,
        samples_per_s=chosen.samples_per_s,
        data_wait_share=chosen.data_wait_share,
        ties=tuple(found.config for found in tied if found is not chosen),
        why_this_one=_why(chosen, top, len(tied)),
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


def _why(chosen: Configuration, top: Configuration, tied: int) -> str:
    if tied == 1:
        return "it is the fastest, and every other is slower beyond the noise"
    if chosen is top:
        return f"{tied} configurations cannot be told apart; it is the fastest and the cheapest of them"
    return (
        f"{tied} configurations cannot be told apart; it is the cheapest of them "
        f"(fewest workers, then least memory); the fastest looked {config_label(top.config)}"
    )


def _no_gain(config: Config, baseline: Config) -> str:
    return "it is the baseline itself" if config == baseline else "no round holds both it and the baseline"
