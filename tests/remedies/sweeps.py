"""Sweeps whose rates are known, for the remedies to be asked about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from loaderbench.records import Config, Failure, Recommendation, Trial
from loaderbench.remedies import Findings, recommend
from loaderbench.statistics.choice import choose_best
from loaderbench.statistics.configurations import summarize

AXES: dict[str, list[Any]] = {"batch_size": [8, 32], "num_workers": [0, 2, 8], "pin_memory": [False, True]}
TODAY: Config = {"batch_size": 8, "num_workers": 0, "pin_memory": False}


def findings(
    axes: dict[str, list[Any]], baseline: Config, factors: dict[tuple[str, Any], float], rounds: int = 3, **more: Any
) -> Findings:
    """A sweep in which each value of an axis multiplies the rate of 100 by its factor."""
    configs: list[Config] = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    trials = [_trial(config, number, factors) for number in range(1, rounds + 1) for config in configs]
    found = summarize(configs, trials)
    best, why = choose_best(found, baseline, trials, rounds, {})
    return Findings(found, trials, best, baseline, axes, **{"accelerator": True, "why_no_best": why, **more})


def measured(
    rates: Sequence[tuple[Config, Sequence[float]]], axes: dict[str, list[Any]], *, sizes: Sequence[int] = ()
) -> Findings:
    """A sweep with these rates by round, and the host memory of each; the first configuration is the baseline."""
    memory = [*sizes, *[None] * (len(rates) - len(sizes))]
    trials = [
        replace(_trial(config, number, {}), samples_per_s=rate, pss_bytes=size)
        for (config, given), size in zip(rates, memory, strict=True)
        for number, rate in enumerate(given, 1)
    ]
    found = summarize([config for config, _ in rates], trials)
    baseline = rates[0][0]
    best, why = choose_best(found, baseline, trials, 3, {})
    return Findings(found, trials, best, baseline, axes, accelerator=True, why_no_best=why)


def _trial(config: Config, number: int, factors: dict[tuple[str, Any], float]) -> Trial:
    rate = 100.0 + number
    for item in config.items():
        rate *= factors.get(item, 1.0)
    name = f"r{number}-{config}"
    return Trial(
        role="sweep", id=name, config=config, round=number, status="completed", samples_per_s=rate, data_wait_share=0.5
    )


def short_of_room(kind: str, *, limit_bytes: int, needed_bytes: int | None = None) -> Findings:
    """A sweep in which what has workers runs out of shared memory, or of memory."""
    found = findings(AXES, TODAY, {})
    failure = Failure(kind, "", "", None, limit_bytes, needed_bytes)
    trials = [
        replace(trial, status="failed", samples_per_s=None, failure=failure) if trial.config["num_workers"] else trial
        for trial in found.trials
    ]
    return replace(found, trials=trials, highest_memory_limit_bytes=1 << 40)


def answers(given: Findings) -> dict[str, Recommendation]:
    return {found.id: found for found in recommend(given)}
