"""Plans, as a suite, what to measure of a script's loader within a budget."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loaderbench.diagnosis.thresholds import ONE_THREAD
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
"""Share of the budget for the sweep; the rest is for fixes and the report."""

START_S = 0.8  # start and end of a forked trial with its workers
IMPORT_S = 4.0  # CPU time of an unforked worker until it has imported torch and the script
WARM_UP = 1.5  # as a multiple of the steady state
LEAST_S, MOST_S = 0.2, 3.0  # steady state of a trial, in seconds
BATCHES = 8  # fewest batches of a trial, including its warm-up
FEWEST = 3  # fewest worker counts
LEAST_TIMEOUT_S = 10.0  # of a trial, which may hang because a forked copy has no threads
LATE = 5  # multiple of the expected start after which a trial ends, for busy machines
PART_OF_A_THREAD = 0.3  # share of a step's time; an extra thread that computes or spins for less is not counted
EPOCHS = 1.3  # epochs that a trial of complete epochs takes, including its warm-up


@dataclass(frozen=True, kw_only=True)
class OwnLoop:
    """What is known about the loop that uses the loader, per sample; `None` if not measured.

    `step_s_per_sample` is the time from a batch to the request for the next. `step_cpu_s_per_sample` is the CPU time of
    the main process during that time; it is larger if several threads compute. `samples_per_batch` is the mean size of
    batches.
    """

    samples_per_s: float | None = None
    step_s_per_sample: float | None = None
    step_cpu_s_per_sample: float | None = None
    samples_per_batch: float | None = None

    @property
    def demand(self) -> float | None:
        """Samples/s that the step takes from a loader that never makes it wait."""
        return 1 / self.step_s_per_sample if self.step_s_per_sample else None

    @property
    def step_threads(self) -> float | None:
        """Mean number of threads that compute in the step."""
        known = self.step_s_per_sample and self.step_cpu_s_per_sample
        return self.step_cpu_s_per_sample / self.step_s_per_sample if known else None  # type: ignore[operator]

    @property
    def computes_on_cpu(self) -> bool:
        """Whether a thread of the main process computes for most of the step, so no device sets its pace."""
        return (self.step_threads or 0.0) >= ONE_THREAD

    @property
    def host_threads(self) -> int:
        """Number of threads in which an emulated step uses its CPU time."""
        return max(1, math.ceil((self.step_threads or 1.0) - PART_OF_A_THREAD))


@dataclass(frozen=True, kw_only=True)
class TuneOrder:
    """What to tune for, and for how long. `script` is the path of the script that has the loader."""

    name: str
    budget_s: float
    own: OwnLoop = OwnLoop()
    script: Path = Path()


@dataclass(frozen=True)
class TunePlan:
    """A sweep of worker counts, followed by fixes. `whole_epochs`: trials run complete epochs."""

    loaded: LoadedSuite
    whole_epochs: bool


def make_tune_plan(loader: DataLoader[Any], order: TuneOrder) -> TunePlan:
    """Plan as many worker counts as the budget allows, in complete epochs if it allows them.

    With complete epochs, which include the start and end of workers, persistent workers are tried, too. If the budget
    is too small for each count with and without them, all but the current arguments have them.
    """
    epoch_s, start_s = _epoch_s(loader, order.own), _start_s(loader)
    sweep_s = SWEEP_SHARE * order.budget_s / ROUNDS
    whole = epoch_s is not None and FEWEST * (start_s + EPOCHS * epoch_s) <= sweep_s
    trial_s = start_s + (EPOCHS * epoch_s if whole and epoch_s else BATCHES * _batch_s(loader, order.own))
    most = max(FEWEST, int(sweep_s / trial_s))
    sweep: dict[str, list[Scalar]] = {"num_workers": _counts(loader, most)}
    fixed: dict[str, Scalar] = {"batch_size": loader.batch_size} if loader.batch_size else {}
    present = {"prefetch_factor": None, "persistent_workers": False, **worker_arguments(loader)}
    if loader.num_workers:  # as axes with one value, which configurations without workers omit
        sweep |= {axis: [present[axis]] for axis in ("prefetch_factor", "persistent_workers")}
    persists, beside_grid = list(dict.fromkeys((bool(present["persistent_workers"]), True))), 0
    if whole and len(persists) * len(sweep["num_workers"]) <= most:
        sweep["persistent_workers"] = [*persists]
    elif whole:  # the current arguments, as the baseline, are one more config
        beside_grid = 1
        sweep |= {"num_workers": _counts(loader, max(FEWEST, most - 1)), "persistent_workers": [True]}
    count = len(sweep["num_workers"]) * len(sweep.get("persistent_workers", [None])) + beside_grid
    per_trial_s = sweep_s / count - start_s
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
                "seconds": _seconds_of_epochs(per_trial_s, epoch_s) if whole and epoch_s else _seconds(per_trial_s),
                "budget": order.budget_s,
                "timeout_s": timeout_s,
            },
        }
    )
    own = OwnLoader.model_validate({"kind": "target", "target": OWN_LOADER})
    return TunePlan(LoadedSuite(suite.model_copy(update={"dataset": own}), order.script), whole)


def _consumer(own: OwnLoop) -> dict[str, Any]:
    """A device at the pace of the step, with the host work of the step's threads; none if the pace is unknown.

    The main process spent all of that time in the step, so it loads nothing meanwhile.
    """
    if own.demand is None:
        return {"kind": "none"}
    paced: dict[str, Any] = {"kind": "emulated", "demand": float(f"{own.demand:.3g}"), "blocking": True}
    if own.step_cpu_s_per_sample:
        paced["host_threads"] = own.host_threads
        paced["host_cpu_s_per_sample"] = min(own.step_cpu_s_per_sample, own.host_threads / own.demand)
    return paced


def _counts(loader: DataLoader[Any], most: int) -> list[Scalar]:
    """The current worker count and those of `num_workers: auto`, from the number of CPUs outward.

    Includes 0 only if torch accepts the loader's other arguments without workers.
    """
    cpus, present = cpus_allotted(), int(loader.num_workers)
    of_workers = bool(loader.timeout or loader.multiprocessing_context)
    ladder = [int(count or 0) for count in worker_ladder(cpus) if count or not of_workers]
    others = sorted(ladder, key=lambda count: abs(count - cpus))
    return [*sorted(list(dict.fromkeys((present, *others)))[:most])]


def _batch_s(loader: DataLoader[Any], own: OwnLoop) -> float:
    """Approximate seconds that a trial waits for a batch or for the training step."""
    known = [rate for rate in (own.demand, own.samples_per_s) if rate]
    return _batch_samples(loader, own) / min(known) if known else 0.0


def _batch_samples(loader: DataLoader[Any], own: OwnLoop) -> float:
    """Samples per batch, as observed if known: a loader with a batch sampler has no batch size."""
    return own.samples_per_batch or loader.batch_size or 1


def _start_s(loader: DataLoader[Any]) -> float:
    """Approximate seconds until a trial's workers are ready. Workers that are not forked import everything again."""
    if start_method_of(loader) == "fork":
        return START_S
    cpus = cpus_allotted()
    return START_S + IMPORT_S * max(1.0, max(loader.num_workers, int(cpus)) / cpus)


def _seconds(taken_s: float) -> float:
    """Seconds of steady state in a trial that takes `taken_s` seconds in total."""
    return min(MOST_S, max(LEAST_S, round(taken_s / WARM_UP, 2)))


def _seconds_of_epochs(taken_s: float, epoch_s: float) -> float:
    """Seconds of steady state with which a trial measures as many complete epochs as `taken_s` allows, at least one.

    A steady state ends with the first epoch that ends after these seconds, which are therefore half an epoch less.
    """
    epochs = max(1, int(taken_s / WARM_UP / epoch_s))
    return min(MOST_S, max(LEAST_S, round((epochs - 0.5) * epoch_s, 2)))


def _epoch_s(loader: DataLoader[Any], own: OwnLoop) -> float | None:
    """Approximate seconds of an epoch in the script's own loop; `None` if its length or rate is unknown."""
    if own.samples_per_s is None:
        return None
    try:
        return len(loader) * _batch_samples(loader, own) / own.samples_per_s
    except Exception:  # no length, or the user's sampler raises
        return None
