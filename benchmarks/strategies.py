"""Compare grid and adaptive sweeps: trials used, and how often they choose the best configuration or one as fast.

    uv run python benchmarks/strategies.py [--repeats 200] [--seed 0] [--run reports/examples/two-cores/run.json]

The searches are those of a run; trials are simulated. `recorded` uses the rates of a real run as true rates. The others
draw a factor for each value of an axis, and one for each configuration. Each trial has noise from its configuration,
whose spread is drawn too (a median of 5%, sometimes 20%), and from its round, shared by all trials of the round. One
trial in 30 is slowed down by another program. Residuals of recorded runs are between 2 and 8%.

`best dropped`: the adaptive sweep excluded the configuration that is truly the best. `within 5%`: the chosen
configuration is truly as fast as the best, or slower by no more than that, which the product calls a tie.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from loaderbench.plan import Plan, make_plan
from loaderbench.records import PlannedTrial, Trial
from loaderbench.search import Adaptive, Grid
from loaderbench.statistics.choice import choose_best
from loaderbench.statistics.configurations import PRACTICAL_TIE, summarize
from loaderbench.store import read_run
from loaderbench.suite import Suite

ROUNDS_SPREAD, NEIGHBORS, SLOWED = 0.15, 1 / 30, (0.5, 0.9)
MEDIAN_SPREAD, LARGEST_SPREAD = 0.05, 0.20

SWEEPS = {
    "8 configs": {"batch_size": [32, 128], "num_workers": [0, 1, 2, 3]},
    "48 configs": {"batch_size": [32, 64, 128], "num_workers": [0, 2, 4, 8], "a": [1, 2], "b": [1, 2]},
    "500 configs": {"a": [1, 2, 3, 4, 5], "b": [1, 2, 3, 4, 5], "c": [1, 2, 3, 4, 5], "d": [1, 2], "e": [1, 2]},
}
BUDGETS_S = {"500 configs": 900.0}


@dataclass(frozen=True)
class Truth:
    """The true rate of each configuration, and the spread of its trials."""

    rates: dict[str, float]
    spreads: dict[str, float]

    @property
    def best(self) -> str:
        """The fastest configuration."""
        return max(self.rates, key=lambda name: self.rates[name])


@dataclass(frozen=True)
class Outcome:
    """One sweep: its trials, whether the best was dropped, and the chosen true rate relative to the best."""

    trials: int
    dropped: bool
    reached: float


def plan_of(axes: dict[str, list[int]], strategy: str, rounds: int, budget_s: float | None, seed: int) -> Plan:
    """Plan a sweep as a run does."""
    measure = {"strategy": strategy, "rounds": rounds, "seed": seed, "budget": budget_s, "verify": False}
    dataset = {"kind": "target", "target": "simulated:dataset"}
    suite = Suite.model_validate({"dataset": dataset, "sweep": axes, "measure": measure})
    return make_plan(suite, cpus_allotted=8, accelerator=True)


def drawn(plan: Plan, random_: random.Random) -> Truth:
    """Draw true rates: a factor for each value of an axis, one for each configuration, and the spread of each."""
    factors = {(axis, value): random_.gauss(0.0, 0.3) for axis, values in plan.axes.items() for value in values}
    rates, spreads = {}, {}
    for config in plan.configurations:
        log = sum(factors.get(pair, 0.0) for pair in config.items()) + random_.gauss(0.0, 0.05)
        rates[str(config)] = 1000 * math.exp(log)
        spreads[str(config)] = spread(random_)
    return Truth(rates, spreads)


def spread(random_: random.Random) -> float:
    """Draw the spread of the logarithm of a configuration's rates."""
    return min(LARGEST_SPREAD, MEDIAN_SPREAD * math.exp(random_.gauss(0.0, 0.6)))


def recorded(plan: Plan, path: Path, random_: random.Random) -> tuple[Plan, Truth]:
    """The configurations of a run and its rates; spreads are drawn."""
    run = read_run(path)
    found = [one for one in run.configurations if one.samples_per_s]
    rates = {str(one.config): one.samples_per_s.est for one in found if one.samples_per_s}
    configs = tuple(one.config for one in found)
    plan = replace(plan, axes=run.plan.axes, configurations=configs, baseline=run.plan.baseline)
    return plan, Truth(rates, {name: spread(random_) for name in rates})


def simulate(plan: Plan, truth: Truth, random_: random.Random) -> Outcome:
    """Simulate a sweep as in a run, and choose the best."""
    search, trials = (Adaptive if plan.is_adaptive else Grid)(plan), list[Trial]()
    room = math.inf if plan.sweep_s is None else plan.sweep_s / plan.trial_s
    while planned := search.next_round(trials, room - len(trials)):
        shared = random_.gauss(0.0, ROUNDS_SPREAD)
        trials += [_trial(one, truth, shared, random_) for one in planned]
    sweep, dropped = [one for one in trials if one.role == "sweep"], search.dropped(trials, "no time")
    chosen, _ = choose_best(
        summarize(plan.configurations, sweep), plan.baseline, sweep, plan.rounds, {}, dropped=dropped
    )
    looked_at = {str(one.config) for one in sweep}
    best = max(looked_at, key=lambda name: truth.rates[name])
    reached = truth.rates[str(chosen.config)] / truth.rates[truth.best] if chosen else 0.0
    return Outcome(len(trials), any(str(one.config) == best and one.ratio for one in dropped), reached)


def _trial(planned: PlannedTrial, truth: Truth, shared: float, random_: random.Random) -> Trial:
    name = str(planned.config)
    rate = truth.rates[name] * math.exp(shared + random_.gauss(0.0, truth.spreads[name]))
    slowed = random_.uniform(*SLOWED) if random_.random() < NEIGHBORS else 1.0
    return Trial(**vars(planned), status="completed", samples_per_s=rate * slowed, data_wait_share=0.5)


def compare(name: str, made: Callable[[str, int, random.Random], tuple[Plan, Truth]], repeats: int, seed: int) -> None:
    """Print a row for each strategy and number of rounds."""
    for strategy, rounds in product(("grid", "adaptive"), (3, 6)):
        if name in BUDGETS_S and strategy == "grid":
            continue
        found = list[Outcome]()
        for number in range(repeats):
            random_ = random.Random(f"{seed} {number}")
            plan, truth = made(strategy, rounds, random_)
            found.append(simulate(plan, truth, random_))
        print(_row(name, strategy, rounds, found))


def _row(name: str, strategy: str, rounds: int, found: Sequence[Outcome]) -> str:
    count = len(found)
    trials = sum(one.trials for one in found) / count
    within = sum(one.reached >= 1 - PRACTICAL_TIE for one in found)
    lost = sum(1 - one.reached for one in found) / count
    dropped = f"{sum(one.dropped for one in found)} of {count}" if strategy == "adaptive" else ""
    return f"| {name} | {strategy} | {rounds} | {trials:,.0f} | {within} of {count} | {lost:.1%} | {dropped} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--run", type=Path, default=Path("reports/examples/two-cores/run.json"))
    asked = parser.parse_args()
    print("| sweep | strategy | rounds | trials | within 5% | slower than the best, mean | best dropped |")
    print("| --- | --- | --: | --: | --: | --: | --: |")

    def of_run(strategy: str, rounds: int, random_: random.Random) -> tuple[Plan, Truth]:
        return recorded(plan_of({"num_workers": [0]}, strategy, rounds, None, 0), asked.run, random_)

    compare("recorded, 8 configs", of_run, asked.repeats, asked.seed)
    for name, axes in SWEEPS.items():

        def made(
            strategy: str,
            rounds: int,
            random_: random.Random,
            *,
            axes: dict[str, list[int]] = axes,
            budget_s: float | None = BUDGETS_S.get(name),
        ) -> tuple[Plan, Truth]:
            budget_s = budget_s if strategy == "adaptive" else None
            plan = plan_of(axes, strategy, rounds, budget_s, random_.randrange(1000))
            return plan, drawn(plan, random_)

        compare(name, made, asked.repeats, asked.seed)


if __name__ == "__main__":
    main()
