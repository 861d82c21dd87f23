"""What is measured of a script's loader within a budget, as a suite."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loaderbench.environment import cpus_allotted
from loaderbench.loaders.torch_loader import worker_ladder
from loaderbench.records import Scalar
from loaderbench.records.words import OWN_LOADER
from loaderbench.suite import LoadedSuite, Suite
from loaderbench.tracing.loader import start_method_of, worker_arguments
from loaderbench.tuning.own_loader import OwnLoader

if TYPE_CHECKING:
    from torch.utils.data import DataLoader

ROUNDS = 3
SWEEP_SHARE = 0.6
"""Of the budget, for the sweep; the rest is for fixes and for the report."""

START_S = 0.8  # of a forked trial with its workers, and its end
IMPORT_S = 4.0  # CPU time of a worker that is not forked, until it has imported torch and the script
WARM_UP = 1.5  # times the steady state
LEAST_S, MOST_S = 0.2, 3.0  # steady state of a trial
BATCHES = 8  # of a trial at least, those of its warm-up among them
FEWEST = 3  # worker counts
LEAST_TIMEOUT_S = 10.0  # of a trial; it may hang in a copy, whose process has no threads
LATE = 5  # times the expected start, for a busy machine; then a trial is given up
PART_OF_A_THREAD = 0.3  # share of a step's time; an extra thread that computes or spins for less is not counted
EPOCHS = 1.3  # that a trial of whole epochs takes, its warm-up among them


@dataclass(frozen=True, kw_only=True)
class OwnLoop:
    """What is known of the loop that takes the loader's batches, per sample; `None` where it was not measured.

    `step_s_per_sample` is the time from a batch to the request for the next. `step_cpu_s_per_sample` is the CPU time of
    the main process in it: more than that where several threads compute. `samples_per_batch` is what batches held.
    """

    samples_per_s: float | None = None
    step_s_per_sample: float | None = None
    step_cpu_s_per_sample: float | None = None
    samples_per_batch: float | None = None

    @property
    def demand(self) -> float | None:
        """Samples/s that the step takes of a loader that never lets it wait."""
        return 1 / self.step_s_per_sample if self.step_s_per_sample else None

    @property
    def step_threads(self) -> float | None:
        """How many threads compute in the step, on average."""
        known = self.step_s_per_sample and self.step_cpu_s_per_sample
        return self.step_cpu_s_per_sample / self.step_s_per_sample if known else None  # type: ignore[operator]

    @property
    def host_threads(self) -> int:
        """Threads that an emulated step takes its CPU time in."""
        return max(1, math.ceil((self.step_threads or 1.0) - PART_OF_A_THREAD))


@dataclass(frozen=True, kw_only=True)
class TuneOrder:
    """What to tune for, for how long. `script` is the file of the script that has the loader."""

    name: str
    budget_s: float
    own: OwnLoop = OwnLoop()
    script: Path = Path()


@dataclass(frozen=True)
class TunePlan:
    """A sweep of worker counts and fixes for the cause; `whole_epochs`: a trial takes one epoch after another."""

    loaded: LoadedSuite
    whole_epochs: bool


def make_tune_plan(loader: DataLoader[Any], order: TuneOrder) -> TunePlan:
    """As many worker counts as the budget allows; whole epochs, with their start and end, where it allows them.

    Then workers that persist are tried, too.
    """
    epoch_s, start_s = _epoch_s(loader, order.own), _start_s(loader)
    sweep_s = SWEEP_SHARE * order.budget_s / ROUNDS
    whole = epoch_s is not None and FEWEST * (start_s + EPOCHS * epoch_s) <= sweep_s
    trial_s = start_s + (EPOCHS * epoch_s if whole and epoch_s else BATCHES * _batch_s(loader, order.own))
    most = max(FEWEST, int(sweep_s / trial_s))
    sweep: dict[str, list[Scalar]] = {"num_workers": _counts(loader, most)}
    fixed: dict[str, Scalar] = {"batch_size": loader.batch_size} if loader.batch_size else {}
    present = {"prefetch_factor": None, "persistent_workers": False, **worker_arguments(loader)}
    if loader.num_workers:  # as axes of one value, which a configuration without workers leaves out
        sweep |= {axis: [present[axis]] for axis in ("prefetch_factor", "persistent_workers")}
    persists = list(dict.fromkeys((bool(present["persistent_workers"]), True)))
    if whole and len(persists) * len(sweep["num_workers"]) <= most:
        sweep["persistent_workers"] = [*persists]
    count = len(sweep["num_workers"]) * len(sweep.get("persistent_workers", [None]))
    timeout_s = max(LEAST_TIMEOUT_S, order.budget_s / 4, LATE * start_s)
    suite = Suite.model_validate(
        {
            "name": order.name,
            "dataset": {"kind": "target", "target": OWN_LOADER},
            "loader": fixed,
            "sweep": sweep,
            "baseline": {axis: present[axis] for axis in sweep},
            "consumer": _consumer(order.own),
            "measure": {
                "rounds": ROUNDS,
                "seconds": _seconds(sweep_s / count - start_s),
                "budget": order.budget_s,
                "timeout_s": timeout_s,
            },
        }
    )
    own = OwnLoader.model_validate({"kind": "target", "target": OWN_LOADER})
    return TunePlan(LoadedSuite(suite.model_copy(update={"dataset": own}), order.script), whole)


def _consumer(own: OwnLoop) -> dict[str, Any]:
    """A device at the pace of the step, whose host computes as the step's threads do; none where it is not known."""
    if own.demand is None:
        return {"kind": "none"}
    paced: dict[str, Any] = {"kind": "emulated", "demand": float(f"{own.demand:.3g}")}
    if own.step_cpu_s_per_sample:
        paced["host_threads"] = own.host_threads
        paced["host_cpu_s_per_sample"] = min(own.step_cpu_s_per_sample, own.host_threads / own.demand)
    return paced


def _counts(loader: DataLoader[Any], most: int) -> list[Scalar]:
    """The present worker count and those of `num_workers: auto`, from the number of CPUs outward.

    No workers only where torch takes the loader's other arguments without any.
    """
    cpus, present = cpus_allotted(), int(loader.num_workers)
    of_workers = bool(loader.timeout or loader.multiprocessing_context)
    ladder = [int(count or 0) for count in worker_ladder(cpus) if count or not of_workers]
    others = sorted(ladder, key=lambda count: abs(count - cpus))
    return [*sorted(list(dict.fromkeys((present, *others)))[:most])]


def _batch_s(loader: DataLoader[Any], own: OwnLoop) -> float:
    """Seconds for which a trial waits for a batch or for the training step, about."""
    known = [rate for rate in (own.demand, own.samples_per_s) if rate]
    return _batch_samples(loader, own) / min(known) if known else 0.0


def _batch_samples(loader: DataLoader[Any], own: OwnLoop) -> float:
    """As batches were seen to hold: a loader with a sampler of batches has no batch size."""
    return own.samples_per_batch or loader.batch_size or 1


def _start_s(loader: DataLoader[Any]) -> float:
    """Seconds until the workers of a trial are ready, about; those that are not forked import everything again."""
    if start_method_of(loader) == "fork":
        return START_S
    cpus = cpus_allotted()
    return START_S + IMPORT_S * max(1.0, max(loader.num_workers, int(cpus)) / cpus)


def _seconds(taken_s: float) -> float:
    """The steady state of a trial that may take batches for so long."""
    return min(MOST_S, max(LEAST_S, round(taken_s / WARM_UP, 2)))


def _epoch_s(loader: DataLoader[Any], own: OwnLoop) -> float | None:
    """Seconds of an epoch of the script's own loop, about; `None` where its length or its rate is not known."""
    if own.samples_per_s is None:
        return None
    try:
        return len(loader) * _batch_samples(loader, own) / own.samples_per_s
    except Exception:  # an iterable dataset without a length, or a sampler of the user's
        return None
