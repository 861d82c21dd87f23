"""Figures of a diagnosis in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.limits import disturbed
from loaderbench.diagnosis.thresholds import NOTICED, SPARE_CPUS
from loaderbench.loaders import worker_count
from loaderbench.records import Interval, StageCost, Trial, WorkerStates


def in_kernel(facts: Facts) -> str:
    """The kernel's share of the CPU time, and the page faults."""
    share = (facts.loads.system_share if facts.loads else None) or 0.0
    return (
        f"{in_percent(share)} of the CPU time is the kernel's, at {facts.faults_per_sample:,.0f} page faults a sample"
    )


def cpus_in_use(facts: Facts) -> str:
    """How many CPUs this program uses, and others where they disturb."""
    if facts.own_cpus is None:
        return "how many CPUs it used is not known"
    others = f", and other programs {facts.others_cpus:.1f}" if facts.others_cpus and disturbed(facts) else ""
    threads = f", {facts.library_cpus:.1f} of them by threads of libraries" if facts.library_cpus >= SPARE_CPUS else ""
    return f"{facts.own_cpus:.1f} of {facts.cpus:g} CPUs are in use{threads}{others}"


def in_percent(share: float) -> str:
    """`27%`."""
    return f"{share * 100:.0f}%"


def in_seconds(seconds: float) -> str:
    """Seconds, or milliseconds below one."""
    if seconds < 0.9995:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:,.0f} s"


def describe_inside(trials: Sequence[Trial]) -> tuple[str, ...]:
    """Name the dearest stage and what the workers were doing; nothing for what was not measured."""
    trial = next((trial for trial in trials if trial.status == "completed"), None)
    if trial is None:
        return ()
    said = [_dearest(trial.stages, _whose(trial)) if trial.stages else ""]
    said += [f"workers: {states_in_words(trial.workers)}"] if trial.workers else []
    return tuple(line for line in said if line)


def loaded_by(trial: Trial) -> Literal["workers", "main_process", "unknown"]:
    """Who made the samples: by the configuration, and where that leaves it open by the processes seen at work.

    A user's own loader in a profile may load in threads of the main process.
    """
    count = worker_count(trial.config, {})
    if count or (count is None and trial.workers is not None):
        return "workers"
    seen_alone = trial.main_process is not None and trial.role != "profile"
    return "main_process" if count == 0 or seen_alone else "unknown"


def in_main_process(trial: Trial) -> bool:
    """Whether the loader has no workers: the loop itself loads."""
    return loaded_by(trial) == "main_process"


def states_in_words(states: WorkerStates) -> str:
    """`71% on a CPU, 20% waiting for a CPU, 9% blocked`."""
    shares = (states.on_cpu_share, states.run_queue_share, states.blocked_share)
    on_cpu, waiting, blocked = (f"{share * 100:.0f}%" for share in shares)
    return f"{on_cpu} on a CPU, {waiting} waiting for a CPU, {blocked} blocked"


def _whose(trial: Trial) -> str:
    return {
        "workers": "the workers' time for a sample",
        "main_process": "a sample's time in the main process",
        "unknown": "a sample's time inside the loader",
    }[loaded_by(trial)]


def _dearest(stages: dict[str, StageCost], whose: str) -> str:
    walls_s = {name: cost.wall_s for name, cost in stages.items() if cost.wall_s is not None}
    whole_s = sum(walls_s.values())
    if whole_s <= 0:
        return ""
    name = max(walls_s, key=lambda stage: walls_s[stage])
    what = "the dataset itself" if name == "sample" else name
    return f"{what} takes {walls_s[name] / whole_s * 100:.0f}% of {whose} ({walls_s[name] * 1e3:.3g} ms)"


def percent(share: Interval) -> str:
    """`27% (24-30%)` with an en dash; without the bracket for a single round."""
    if share.lo is None or share.hi is None:
        return f"{share.est:.0%}"
    return f"{share.est * 100:.0f}% ({share.lo * 100:.0f}\N{EN DASH}{share.hi * 100:.0f}%)"


def waits(wait: Interval) -> str:
    """How much it waits, and from where on that counts."""
    return f"data wait share {percent(wait)}; {NOTICED * 100:.0f}% or more is input-bound"


def delivers(rate: Interval) -> str:
    """Samples/s, with their interval."""
    spread = f" ({rate.lo:,.0f}\N{EN DASH}{rate.hi:,.0f})" if rate.lo is not None and rate.hi is not None else ""
    return f"{rate.est:,.0f}{spread} samples/s are delivered"


def transfers(facts: Facts) -> str:
    """How long the marked transfer takes."""
    return f"the stage `transfer` of the loop takes {in_percent(facts.transfer_share)} of all time"
