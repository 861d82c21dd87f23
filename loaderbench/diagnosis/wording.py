"""Wording of a diagnosis: its numbers, and the clauses that the rules of `cause.py` combine into headlines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from loaderbench.diagnosis.copy_bandwidth import copy_evidence
from loaderbench.diagnosis.cpu_use import cpus_are_full, main_process_takes_the_cpus
from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.limits import busiest, disturbed, first_making_share, share_of_cpu
from loaderbench.diagnosis.thresholds import LOCKED, NOTICED, SPARE_CPUS
from loaderbench.loaders import worker_count
from loaderbench.records import Evidence, Interval, Limit, StageCost, Trial, WorkerStates
from loaderbench.records.words import NOT_READ_TWICE, STAGE_NAMES

NEIGHBORS = "other programs use CPUs that the loader needs"
NOTABLY_IDLE = 0.2  # idle share of the workers' time; below it, they count as busy


def stage_name(work: str) -> str:
    """A stage's name in a sentence; a user-defined name is unchanged."""
    return STAGE_NAMES.get(work, work)


def stage_of(work: str, *, is_loader: bool) -> str:
    """The stage that a part of the work belongs to; without a dataset, work in a `sample` is the main process's."""
    return "main_process" if work == "sample" and not is_loader else work


def label_of(work: str) -> str:
    """A stage's name at the start of a line: `Decode`."""
    name = stage_name(work).removeprefix("the ")
    return name[:1].upper() + name[1:]


def in_kernel(facts: Facts) -> str:
    """The kernel's share of CPU time, and the page faults."""
    share = (facts.loads.system_share if facts.loads else None) or 0.0
    per_s = (facts.loads.minor_faults_per_s if facts.loads else None) or 0.0
    faults = f"{facts.faults_per_sample:,.0f} page faults/sample"
    counted = faults if not facts.from_outside else f"{per_s:,.0f} page faults/s"
    return f"{in_percent(share)} of CPU time in the kernel ({counted})"


def cpus_in_use(facts: Facts) -> str:
    """The CPUs that this program uses, and those of other programs if they disturb."""
    return "CPUs busy: not known" if facts.own_cpus is None else _busy(facts, f"{available_cpus(facts.cpus)} busy")


def cpus_alone(facts: Facts) -> str:
    """Like `cpus_in_use`, without the unit, which the label gives."""
    return "not known" if facts.own_cpus is None else _busy(facts, f"{facts.cpus:g}")


def _busy(facts: Facts, of: str) -> str:
    others = f", other programs {facts.others_cpus:.1f}" if facts.others_cpus and disturbed(facts) else ""
    spinning = f"{facts.library_cpus:.1f}"
    threads = f", {spinning} of them spinning in library threads" if spinning != "0.0" else ""
    return f"{facts.own_cpus or 0.0:.1f} of {of}{threads}{others}"


def in_percent(share: float) -> str:
    """A share as `27%`."""
    return f"{share * 100:.0f}%"


def wait_in_percent(share: float) -> str:
    """A share as `27%`; `4.9%` just below the cutoff of input-bound, where `5%` would contradict the verdict."""
    rounded = round(share, 2)
    return f"{math.floor(share * 1000) / 10:.1f}%" if share < NOTICED <= rounded else in_percent(share)


def in_seconds(seconds: float) -> str:
    """Seconds, or milliseconds below one second; never with an exponent."""
    if seconds < 0.9995:
        return "under 0.001 ms" if 0 < seconds < 1e-6 else f"{seconds * 1e3:.3g} ms"
    return f"{seconds:.2g} s" if seconds < 9.95 else f"{seconds:,.0f} s"


WALL_TIME = "Wall time"  # label of the line about the largest stage


def describe_inside(trials: Sequence[Trial], *, is_loader: bool = True) -> tuple[Evidence, ...]:
    """Evidence for the largest stage and the workers' states; empty if not measured."""
    trial = next((trial for trial in trials if trial.status == "completed"), None)
    if trial is None:
        return ()
    costliest = _costliest(trial.stages, _whose(trial), is_loader=is_loader) if trial.stages else ""
    found = {WALL_TIME: costliest, "Workers": states_in_words(trial.workers) if trial.workers else ""}
    return tuple(Evidence("inside", label, figures) for label, figures in found.items() if figures)


def loaded_by(trial: Trial) -> Literal["workers", "main_process", "unknown"]:
    """Which processes made the samples: by configuration, or if that leaves it open, by the processes observed.

    A user's own loader in a profile can load in threads of the main process.
    """
    count = worker_count(trial.config, {})
    has_workers = trial.workers is not None or trial.not_measured.get("workers") == NOT_READ_TWICE
    if count or (count is None and has_workers):
        return "workers"
    seen_alone = trial.main_process is not None and trial.role != "profile"
    return "main_process" if count == 0 or seen_alone else "unknown"


def in_main_process(trial: Trial) -> bool:
    """Whether the loader has no workers, so the loop's process loads."""
    return loaded_by(trial) == "main_process"


def states_in_words(states: WorkerStates) -> str:
    """`71% on a CPU, 20% waiting for a CPU, 9% blocked`, and the CPU time of other threads if it is large."""
    shares = (states.on_cpu_share, states.run_queue_share, states.blocked_share)
    on_cpu, waiting, blocked = (f"{share * 100:.0f}%" for share in shares)
    parts = {"other threads": states.library_share, "sending threads": states.sending_cpu_share or 0.0}
    others = "".join(f"; {name} {share * 100:.0f}% on a CPU" for name, share in parts.items() if share >= LOCKED)
    return f"{on_cpu} on a CPU, {waiting} waiting for a CPU, {blocked} blocked{others}"


def _whose(trial: Trial) -> str:
    return {"workers": "worker", "main_process": "main-process", "unknown": "loader"}[loaded_by(trial)]


def _costliest(stages: dict[str, StageCost], whose: str, *, is_loader: bool) -> str:
    walls_s = {name: cost.wall_s for name, cost in stages.items() if cost.wall_s is not None}
    whole_s = sum(walls_s.values())
    if whole_s <= 0:
        return ""
    name = max(walls_s, key=lambda stage: walls_s[stage])
    share = in_percent(walls_s[name] / whole_s)
    stage = stage_name(stage_of(name, is_loader=is_loader))
    return f"{stage} {share} of {whose} time per sample ({in_seconds(walls_s[name])})"


def percent(share: Interval) -> str:
    """A data wait as `27% (24-30%)`, with an en dash; without the interval for a single round."""
    return f"{wait_in_percent(share.est)}{_between(share)}"


def _between(share: Interval) -> str:
    if share.lo is None or share.hi is None:
        return ""
    return f" ({wait_in_percent(share.lo).removesuffix('%')}\N{EN DASH}{wait_in_percent(share.hi)})"


def waits(wait: Interval, startup_share: float) -> Evidence:
    """The data wait, and the cutoff for input-bound. `startup_share` is the share of time that epoch starts take."""
    share = f"{wait_in_percent(wait.est)} of step time{_between(wait)}"
    if startup_share >= NOTICED > wait.est:
        return Evidence("wait", "Data wait", f"{share}, without epoch starts")
    return Evidence("wait", "Data wait", f"{share}; input-bound at {in_percent(NOTICED)} or more")


def throughput(rate: Interval, label: str = "Throughput") -> Evidence:
    """Samples/s with their interval: `Throughput: 836 samples/s (803-870)`."""
    spread = f" ({rate.lo:,.0f}\N{EN DASH}{rate.hi:,.0f})" if rate.lo is not None and rate.hi is not None else ""
    return Evidence("rate", label, f"{rate.est:,.0f} samples/s{spread}")


def first_batch_in_words(facts: Facts) -> tuple[Evidence, ...]:
    """One line about the part of an epoch boundary that passes while the first batch is made, if it is noticeable."""
    if first_making_share(facts) < NOTICED:
        return ()
    return (Evidence("epoch", "First batch", f"takes {in_seconds(facts.first_making_s)} of each epoch boundary"),)


def between_epochs_in_words(facts: Facts) -> tuple[Evidence, ...]:
    """One line about the time between epochs, which the other figures exclude, if it is long."""
    if facts.between_share < NOTICED:
        return ()
    share, each = in_percent(facts.between_share), in_seconds(facts.between_s)
    excluded = "throughput and data wait exclude it"
    line = f", mostly in {facts.between_line.place}" if facts.between_line else ""
    return (Evidence("epoch", "Between epochs", f"{share} of time ({each} each){line}; {excluded}"),)


def transfers(facts: Facts) -> tuple[Evidence, ...]:
    """The share of time of the copy, how it was measured, and its bandwidth."""
    by = facts.transfer_by or "stage `transfer` of the loop"
    share = Evidence("cause", "Host-to-device copy", f"{in_percent(facts.transfer_share)} of time ({by})")
    return (share, copy_evidence(facts.copy)) if facts.copy else (share,)


def limit_of_work(limit: Limit, facts: Facts) -> str:
    """The limit of the work itself: too few workers, no CPUs left, or CPU time that workers would not reduce."""
    if limit == "workers":
        return _too_few_workers(facts)
    if limit == "neighbors":
        return NEIGHBORS
    if cpus_are_full(facts):
        return "CPUs saturated, mostly by the main process" if main_process_takes_the_cpus(facts) else "CPUs saturated"
    tiny = facts.tiny_batches and not facts.workers
    more = "more workers" if facts.workers else "workers"
    return "batches too small for workers" if tiny else f"limited by CPU time; {more} do not help"


def _too_few_workers(facts: Facts) -> str:
    """`too few workers: 2 busy, 1.4 CPUs free`."""
    spinning = " or spinning" if facts.library_cpus >= SPARE_CPUS else ""
    others = facts.others_cpus or 0.0
    spare = max(0.0, (facts.spare_cpus or 0.0) - (others if others >= SPARE_CPUS else 0.0))
    free = "" if facts.spare_cpus is None else f", {spare:.1f} CPUs free{spinning}"
    if not facts.workers:
        return f"no workers{' (num_workers=0)' if facts.is_loader else ''}{free}"
    at_work = round(facts.workers * (1 - facts.ended_share))
    busy = f"{at_work} busy" if at_work == facts.workers else f"{at_work} of {facts.workers} busy"
    idle = min(facts.idle_share or 0.0, 1.0)
    of_the_time = f" {in_percent(1 - idle)} of the time" if idle >= NOTABLY_IDLE else ""
    return f"too few workers: {busy}{of_the_time}{free}"


def threads_compete(facts: Facts) -> str:
    """`6 threads compete for 2 CPUs`, with one decimal if the mean is fractional."""
    threads = f"{facts.competing_threads:.1f}".removesuffix(".0")
    return f"{threads} threads compete for {available_cpus(facts.cpus)}"


def where(work: str, facts: Facts) -> str:
    """The stage and its share of a sample's CPU time; empty if the parts of a sample are unknown."""
    if work in ("main_process", "transport"):
        return f"; {stage_name(work)} is the bottleneck"
    if work == "stragglers":
        return "; a few slow samples dominate"
    if not facts.cpu_s:
        return ""
    share = f" ({in_percent(share_of_cpu(facts))} of CPU time)" if work == busiest(facts) else ""
    mostly = f", mostly {facts.sample_is_mostly}," if work == "sample" and facts.sample_is_mostly else ""
    return f"; {stage_name(work)}{mostly} is the largest stage{share}"


def available_cpus(cpus: float) -> str:
    """A number of CPUs as `2 CPUs`."""
    return f"{cpus:g} CPU{'' if cpus == 1 else 's'}"
