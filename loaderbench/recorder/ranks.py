"""Merges the ranks of a distributed training into one run, with each rank's wait for the others.

A step of ranks that train together ends only after all of them have received their batch: at the latest in an
all-reduce. A rank that receives its batch early waits there for the last one. The ends of steps also align the clocks
of several hosts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from loaderbench.recorder.batches import Numbers
from loaderbench.recorder.steps import StepTimes
from loaderbench.records import Environment, MachineUse, Measured, Readings, Trial
from loaderbench.records.words import SENT_BY_RANK_0

NOT_TIMED = "steps are timed by the host clock, but not from outside or where the host runs ahead of a device"

_NAMED = 8

_COMPARED: dict[str, Callable[[Environment], str]] = {
    "CPUs": lambda one: f"{one.cpus_allotted:g}",
    "CPU model": lambda one: one.cpu_model or "unknown",
    "Python": lambda one: one.python,
    "torch": lambda one: one.versions.get("torch", "unknown"),
    "GPUs": lambda one: f"{len(one.gpus)}",
}

FEWEST_STEPS = 10
_TOGETHER = 0.9  # share of the steps; others can come first after a pause, such as a checkpoint

_TOO_FEW = f"fewer than {FEWEST_STEPS} steps were timed in every rank"
_APART = "the ranks do not wait for one another in every step"


@dataclass(frozen=True)
class RankRun:
    """What one rank measured: a run of one trial. `steps` are its last steps; `None` if they were not timed."""

    rank: int
    measured: Measured
    readings: Readings
    steps: StepTimes | None = None

    @property
    def trial(self) -> Trial:
        """The rank's trial, with the number of the rank."""
        return replace(self.measured.trials[0], rank=self.rank)

    def with_machine(self, use: MachineUse | None) -> RankRun:
        """The run with another CPU use of the machine."""
        first, *others = self.measured.trials
        return replace(self, measured=replace(self.measured, trials=(replace(first, machine=use), *others)))


def merge_ranks(runs: Sequence[RankRun], ranks: int | None = None) -> tuple[Measured, Readings]:
    """The run of the rank that waits longest for data, with the trials of the other ranks added.

    The readings are that rank's. `ranks` is the number of ranks in the training, if known. Raises `ValueError` if there
    are no ranks.
    """
    if not runs:
        raise ValueError("there are no ranks to merge")
    runs = _with_siblings(runs)
    main = max(runs, key=lambda one: (one.trial.data_wait_share or 0.0, -one.rank))
    shares, why_not = _waits(runs)
    trials = [_with_wait(one.trial, shares.get(one.rank), why_not) for one in sorted(runs, key=lambda one: one.rank)]
    own = next(trial for trial in trials if trial.rank == main.rank)
    others = (replace(trial, id=f"rank{trial.rank}", role="rank") for trial in trials if trial is not own)
    complete = all(one.measured.complete for one in runs)
    notes = (*main.measured.notes, *_differences(runs), *_without_data(runs, ranks))
    return replace(main.measured, trials=(own, *others), complete=complete, notes=notes), main.readings


def _with_siblings(runs: Sequence[RankRun]) -> Sequence[RankRun]:
    """The runs, with the CPU use of all ranks on the same CPUs as that of one program.

    A rank counts its siblings itself if a launcher started them.
    """
    uses: dict[tuple[str, str | None], list[MachineUse]] = {}
    for one in runs:
        if one.trial.machine is not None:
            uses.setdefault(_cpus_of(one), []).append(one.trial.machine)
    return [one.with_machine(_shared_use(one.trial.machine, uses.get(_cpus_of(one), []))) for one in runs]


def _cpus_of(run: RankRun) -> tuple[str, str | None]:
    """The host of a rank, and the CPUs that it may use."""
    return run.trial.host, run.measured.environment.cpus_allowed


def _shared_use(own: MachineUse | None, of_host: Sequence[MachineUse]) -> MachineUse | None:
    if own is None or not any(use is own for use in of_host) or own.ranks >= len(of_host):
        return own
    together = min(own.busy_cpus, sum(use.own_cpus for use in of_host if use.ranks == 1))
    return replace(own, own_cpus=max(own.own_cpus, together), ranks=len(of_host))


def _differences(runs: Sequence[RankRun]) -> Iterator[str]:
    """Yield a line for each difference between the machines of the ranks."""
    machines = {one.trial.host: one.measured.environment for one in runs}
    for label, read in _COMPARED.items():
        found = {host: read(environment) for host, environment in machines.items()}
        if len(set(found.values())) > 1:
            yield f"machines differ in {label}: " + ", ".join(f"{value} on {host}" for host, value in found.items())


def _without_data(runs: Sequence[RankRun], ranks: int | None) -> Iterator[str]:
    """Yield a line for ranks that have other data than the rest, or none."""
    sent = [one.rank for one in runs if one.trial.not_measured.get("data_wait_share") == SENT_BY_RANK_0]
    empty = [one.rank for one in runs if one.trial.status != "completed" and one.rank not in sent]
    known = {one.rank for one in runs}
    if empty and len(empty) < len(runs):
        named = named_ranks(empty)
        yield f"no batch was counted in {named}: does the sampler give each rank the same number of samples?"
    is_alone = any(one.measured.only_rank for one in runs)  # a warning says so
    if ranks is not None and not is_alone and (absent := sorted({*range(ranks)} - known)):
        why = "took no batches of this loader, ran on another machine, or recorded nothing"
        yield f"this report has {len(known)} of {ranks} ranks; {named_ranks(absent)} {why}"
    lengths = {one.rank: one.measured.dataset.files for one in runs if one.measured.dataset.files is not None}
    if len(set(lengths.values())) > 1:
        least, most = min(lengths, key=lengths.__getitem__), max(lengths, key=lengths.__getitem__)
        yield f"datasets differ: {lengths[least]:,} samples in rank {least}, {lengths[most]:,} in rank {most}"


def named_ranks(ranks: Sequence[int]) -> str:
    """Ranks by number, such as `ranks 1, 2, 5`; shortened if there are many."""
    shown = ", ".join(map(str, ranks[:_NAMED])) + (f" and {len(ranks) - _NAMED} more" if len(ranks) > _NAMED else "")
    return f"rank{'' if len(ranks) == 1 else 's'} {shown}"


def _waits(runs: Sequence[RankRun]) -> tuple[dict[int, float], str]:
    """By rank, the share of step time spent waiting for the batches of others; and the reason if that is unknown."""
    if len(runs) < 2:
        return {}, "one rank was recorded"
    if any(one.steps is None for one in runs):
        return {}, NOT_TIMED
    return waits_for_others({one.rank: RankSteps(one.trial.host, one.steps) for one in runs if one.steps is not None})


def _with_wait(trial: Trial, share: float | None, why_not: str) -> Trial:
    reasons = {} if share is not None else {"rank_wait_share": why_not}
    return replace(trial, rank_wait_share=share, not_measured={**trial.not_measured, **reasons})


@dataclass(frozen=True)
class RankSteps:
    """A rank's host and its last steps."""

    host: str
    steps: StepTimes


def waits_for_others(ranks: Mapping[int, RankSteps]) -> tuple[dict[int, float], str]:
    """By rank, the share of step time spent waiting for others; and the reason if the shares are unknown."""
    known = [one.steps.names for one in ranks.values()]
    common = set[tuple[int, int]].intersection(*known) if len(known) > 1 else set()
    if len(common) < FEWEST_STEPS:
        return {}, _TOO_FEW
    hosts = [one.host for one in ranks.values()]
    asked_s, got_s, ended_s = _aligned(np.stack([one.steps.at(common) for one in ranks.values()]), hosts)
    last_s = got_s.max(axis=0)
    if (ended_s.min(axis=0) >= last_s).mean() < _TOGETHER:
        return {}, _APART
    longest_s = np.take_along_axis(got_s - asked_s, got_s.argmax(axis=0)[None], axis=0)
    waits_s = np.minimum(last_s - got_s, longest_s).clip(0).sum(axis=1)
    shares = waits_s / (ended_s - asked_s).sum(axis=1)
    return dict(zip(ranks, shares.tolist(), strict=True)), ""


def _aligned(times_s: Numbers, hosts: Sequence[str]) -> tuple[Numbers, Numbers, Numbers]:
    """Split times (ranks, steps, 3) into three arrays of shape (ranks, steps), by the clock of the first host."""
    ends_s = {host: times_s[[one == host for one in hosts], :, 2].mean(axis=0) for host in dict.fromkeys(hosts)}
    ahead_s = [float(np.median(ends_s[host] - ends_s[hosts[0]])) for host in hosts]
    asked_s, got_s, ended_s = np.moveaxis(times_s - np.array(ahead_s)[:, None, None], 2, 0)
    return asked_s, got_s, ended_s
