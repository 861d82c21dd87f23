"""Chooses the finalists of a sweep, and decides when the best of them is known."""

from __future__ import annotations

from collections.abc import Sequence

from loaderbench.records import Config, Trial
from loaderbench.statistics.configurations import rates_by_round, ratio_of
from loaderbench.statistics.intervals import FEWEST_ROUNDS, LEVEL, is_below_one
from loaderbench.statistics.racing import estimates, is_tie

FINAL_TIE = 0.03
"""A finalist whose entire interval is within this share of the best needs no more rounds."""


def finalists(configs: Sequence[Config], trials: Sequence[Trial], level: float = LEVEL) -> list[Config]:
    """Configurations not excluded as best at this level, fastest first; empty if none has enough rounds."""
    rates = {number: rates_by_round(config, trials) for number, config in enumerate(configs)}
    ahead = estimates({number: found for number, found in rates.items() if len(found) >= FEWEST_ROUNDS})
    order = [configs[number] for number in sorted(ahead, key=lambda number: -ahead[number])]
    return [one for one in order if one is order[0] or not is_below_one(ratio_of(one, order[0], trials, level))]


def is_settled(found: Sequence[Config], trials: Sequence[Trial]) -> bool:
    """Whether the first finalist is tied with all others, or is the only one left."""
    ratios = (ratio_of(config, found[0], trials) for config in found[1:])
    return all(ratio is not None and is_tie(ratio, FINAL_TIE) for ratio in ratios)
