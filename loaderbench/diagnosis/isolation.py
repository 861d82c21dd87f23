"""Isolation runs: the time of one configuration with parts of the pipeline removed, and the resulting ceiling.

The cost of a part is the difference that its absence makes; SPDL's optimization guide calls this headspace analysis
(https://facebookresearch.github.io/spdl, "Optimization guide"). Two overlapping parts take at best the time of the
slower one; any time beyond that is interference.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

from loaderbench.consumers import NO_CONSUMER, consumer_kind
from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.failures import failure_in_words
from loaderbench.diagnosis.ranking import Subject
from loaderbench.records import (
    Ceiling,
    Interval,
    Isolation,
    IsolationName,
    IsolationRun,
    IsolationRunName,
    Reasons,
    Trial,
)
from loaderbench.statistics.intervals import mean_interval, rate_interval

ORDER: tuple[IsolationRunName, ...] = ("replay_device", "replay_host", "loader_warm", "loader_cold", "end_to_end")
DRIFT = 1.1  # maximum ratio of reference decode times between sweep and isolation runs; an idle machine stays below it
UNKNOWN = "this run has no isolation runs"
FEWEST_BATCHES = 5  # minimum batches of a steady state that ended early
SAME_SIZE = 0.01  # maximum relative difference of mean batch sizes that count as equal
NOTHING_BUT_WAITING = 0.999  # data wait above which the rest of the loop is too short to divide by

MOST_ROUNDS = 3
"""Rounds of isolation runs: the fewest that give a useful confidence interval."""

_INTERVAL = "samples_per_s_interval"
_COLD_WAS_FASTER = "the pass with a cold page cache was faster than the one with a warm one, so they cannot be compared"
_COPY_BY = "cached batches: replayed from the host minus from the GPU"


def describe_isolation(
    trials: Sequence[Trial],
    runs: Sequence[Trial],
    *,
    left_out: Reasons,
    consumer: str,
    demand: float | None,
    cache: str,
) -> tuple[Isolation | None, str]:
    """Compare the isolation runs with the sweep's `trials`, or say why there are none.

    `left_out` are reasons by isolation run, or one for all under `isolation`. `consumer` is a resolved kind, `demand`
    its demand in samples/s if it has one, and `cache` the suite's page-cache mode.
    """
    own_reasons = {name: why for name, why in left_out.items() if name in (*ORDER, "isolation")}
    if not runs:
        return None, left_out.get("isolation") or "; ".join(dict.fromkeys(own_reasons.values())) or UNKNOWN
    own = {name: [trial for trial in runs if trial.isolation == name] for name in ORDER}
    config = runs[0].config
    own["end_to_end"] = [trial for trial in trials if trial.config == config]
    per_batch = of_one_size([trial for found in own.values() for trial in found])
    times = {name: times_of(found, per_batch=per_batch) for name, found in own.items()}
    all_gone = left_out.get("isolation")
    found = {name: _describe_run(name, own[name], times[name], left_out.get(name, all_gone)) for name in ORDER}
    if demand is not None:
        times["replay_host"] = _emulated_times(own["end_to_end"], demand, per_batch)
    differences = _differences(times, consumer, cache)
    reasons = _reasons(differences, found, _no_interference(consumer, cache))
    if _is_negative(differences["fetch_s"]):
        differences["fetch_s"], reasons["fetch_s"] = None, _COLD_WAS_FASTER
    return Isolation(
        config=config,
        per="batch" if per_batch else "sample",
        rounds=len({trial.round for trial in runs}),
        runs=tuple(found.values()),
        transfer_s=differences["transfer_s"],
        fetch_s=differences["fetch_s"],
        interference_s=differences["interference_s"],
        notes=tuple(_notes(own)),
        not_measured=reasons,
    ), ""


def _emulated_times(trials: Sequence[Trial], demand: float, per_batch: bool) -> Times:
    """The time that an emulated GPU takes for the trials' batches: a given ceiling, not a measured one."""
    return {t.round: (samples_per_batch(t) if per_batch else 1.0) / demand for t in trials if usable(t)}


def _differences(times: Mapping[IsolationRunName, Times], consumer: str, cache: str) -> dict[str, Interval | None]:
    host, warm = times["replay_host"], times["loader_warm"]
    slower = {number: max(host[number], warm[number]) for number in host.keys() & warm.keys()}
    measured = not _no_interference(consumer, cache)
    return {
        "transfer_s": _difference(host, times["replay_device"]),
        "fetch_s": _difference(times["loader_cold"], warm),
        "interference_s": _difference(times["end_to_end"], slower) if measured else None,
    }


def _difference(more: Times, less: Times) -> Interval | None:
    rounds = sorted(more.keys() & less.keys())
    return mean_interval([more[number] - less[number] for number in rounds]) if rounds else None


def _is_negative(found: Interval | None) -> bool:
    """Whether the interval is entirely below 0. Storage cannot make a loader faster, so the runs are not comparable."""
    return found is not None and found.hi is not None and found.hi < 0


def _no_interference(consumer: str, cache: str) -> str:
    if not consumer_kind(consumer).consumes:
        return NO_CONSUMER
    if cache == "cold":
        return "the sweep starts with a cold page cache, the loader alone with a warm one"
    return ""


def _reasons(
    differences: Mapping[str, Interval | None], runs: Mapping[IsolationRunName, IsolationRun], no_interference: str
) -> Reasons:
    """Why a difference is unknown: the first reason among its runs."""
    needs: dict[str, tuple[IsolationRunName, ...]] = {
        "transfer_s": ("replay_host", "replay_device"),
        "fetch_s": ("loader_cold", "loader_warm"),
        "interference_s": ("loader_warm", "replay_host", "end_to_end"),
    }
    reasons: Reasons = {}
    for name in (name for name, value in differences.items() if value is None):
        missing = (runs[run].not_measured.get("time_s") for run in needs[name])
        reasons[name] = next((why for why in missing if why), "its runs were never measured in the same round")
    if no_interference:
        reasons["interference_s"] = no_interference
    return reasons


def _notes(own: Mapping[IsolationRunName, Sequence[Trial]]) -> list[str]:
    """Notes on how the isolation runs were measured."""
    notes = [trial.sampled for name in ORDER[:2] for trial in own[name] if usable(trial) and trial.sampled][:1]
    short = [trial.batches or 0 for trial in own["loader_cold"] if usable(trial) and trial.ended_early]
    if short:
        least = min(short)
        notes.append(f"the pass with a cold page cache ended early: {least} batches per round")
    return notes + _drift(own)


def _drift(own: Mapping[IsolationRunName, Sequence[Trial]]) -> list[str]:
    """A note if the machine's speed changed between the sweep and the isolation runs, which interference compares."""
    before_s = [t.reference_decode_before_s for t in own["end_to_end"] if t.reference_decode_before_s]
    after_s = [t.reference_decode_before_s for name in ORDER[:-1] for t in own[name] if t.reference_decode_before_s]
    if not before_s or not after_s:
        return []
    ratio = median(after_s) / median(before_s)
    if 1 / DRIFT <= ratio <= DRIFT:
        return []
    changed = f"reference decode time changed by {ratio:.2f}\N{MULTIPLICATION SIGN} after the sweep"
    return [f"{changed}, which also affects the interference"]


Times = dict[int, float]
"""Seconds per batch or per sample, by round."""


def usable(trial: Trial) -> bool:
    """Whether a trial reached a steady state; one that ended early needs enough batches."""
    seen = trial.status == "completed" and bool(trial.samples and trial.batches and trial.steady_s)
    return seen and not (trial.ended_early and (trial.batches or 0) < FEWEST_BATCHES)


def of_one_size(trials: Sequence[Trial]) -> bool:
    """Whether the trials' batches have the same number of samples, which makes seconds per batch comparable."""
    sizes = [samples_per_batch(trial) for trial in trials if usable(trial)]
    return not sizes or max(sizes) <= (1 + SAME_SIZE) * min(sizes)


def samples_per_batch(trial: Trial) -> float:
    """Mean samples per batch over the steady state."""
    return (trial.samples or 0) / (trial.batches or 1)


def times_of(trials: Sequence[Trial], *, per_batch: bool) -> Times:
    """Seconds per batch, or per sample, by round."""
    return {
        trial.round: (trial.steady_s or 0) / ((trial.batches if per_batch else trial.samples) or 1)
        for trial in trials
        if usable(trial)
    }


def _describe_run(name: IsolationRunName, trials: Sequence[Trial], times: Times, left_out: str | None) -> IsolationRun:
    """One isolation run over its rounds; `left_out` is why it was not measured."""
    rates = [trial.samples_per_s for trial in trials if usable(trial) and trial.samples_per_s]
    why = None if times else _why_not(trials, left_out)
    return IsolationRun(
        name=name,
        time_s=rate_interval(list(times.values())) if times else None,
        samples_per_s=rate_interval(rates) if rates else None,
        trials=tuple(trial.id for trial in trials),
        not_measured=dict.fromkeys(("time_s", "samples_per_s"), why) if why else {},
    )


def _why_not(trials: Sequence[Trial], left_out: str | None) -> str:
    failure = next((trial.failure for trial in trials if trial.failure), None)
    if failure is not None:
        return failure_in_words(failure)
    if trials:
        return f"stopped after {trials[-1].batches} batches, before a steady state"
    return left_out or "not run"


def why_not(
    *, consumer: str, cache: str, no_files: str, accelerator: bool, too_short: str = ""
) -> dict[IsolationName, str]:
    """The reason against each isolation run, empty for those to be measured.

    `consumer` is a resolved kind, `cache` the suite's page-cache mode; `no_files` is why the dataset's files are
    unknown, `too_short` why one pass over them does not reach a steady state.
    """
    cold, not_replayed = _not_cold(cache, no_files) or too_short, consumer_kind(consumer).why_not_replayed
    return {
        "replay_device": not_replayed or ("" if accelerator else "no GPU"),
        "replay_host": not_replayed,
        "loader_warm": _not_warm(consumer, cache, cold),
        "loader_cold": cold,
    }


def _not_warm(consumer: str, cache: str, cold: str) -> str:
    """Without a consumer, the sweep is already the loader alone, unless it is compared with another page-cache mode."""
    alone = not consumer_kind(consumer).consumes and cache == "warm" and cold
    return f"{NO_CONSUMER}: the sweep already measures the loader alone" if alone else ""


def _not_cold(cache: str, no_files: str) -> str:
    if no_files:
        return no_files
    if cache == "cold":
        return "the sweep already starts with a cold page cache"
    return "" if hasattr(os, "posix_fadvise") else "this system cannot empty the page cache (no posix_fadvise)"


def with_exposed_copy(facts: Facts | None, isolation: Isolation | None) -> Facts | None:
    """The facts with the exposed copy time from this configuration's isolation runs, if significant."""
    if facts is None or isolation is None or isolation.transfer_s is None:
        return facts
    copy_s, whole_s = isolation.transfer_s, _whole_s(isolation)
    if whole_s is None or copy_s.lo is None or copy_s.lo <= 0:
        return facts
    share = min(1.0, copy_s.est / whole_s)
    return replace(facts, transfer_share=share, transfer_by=_COPY_BY, copy=isolation.copy)


def _whole_s(isolation: Isolation) -> float | None:
    """The time with nothing removed; `None` if it is unknown."""
    found = next((run.time_s for run in isolation.runs if run.name == "end_to_end"), None)
    return found.est if found is not None and found.est > 0 else None


def find_ceiling(
    isolation: Isolation | None, why_no_isolation: str, subject: Subject | None, consumer: str, demand: float | None
) -> tuple[Ceiling | None, str]:
    """The ceiling for any loader, or why there is none. `demand` is in samples/s, for a consumer that has one.

    Headroom is (measured - ceiling) / measured, in time per batch. Source: SPDL's optimization guide.
    """
    if subject is None:
        return None, "nothing was measured"
    kind = consumer_kind(consumer)
    if kind.of_loop:
        return _loop_ceiling(subject)
    if kind.capped:
        return _given_ceiling(subject, kind.who, demand)
    if not kind.consumes:
        return None, NO_CONSUMER
    replayed = next((run for run in isolation.runs if run.name == "replay_host"), None) if isolation else None
    if replayed is None or replayed.samples_per_s is None:
        why = replayed.not_measured.get("samples_per_s") if replayed else why_no_isolation
        return None, f"cached batches were not replayed: {why}"
    rate, rounds = replayed.samples_per_s, len(replayed.trials)
    return Ceiling(
        samples_per_s=rate.est,
        headspace=_headspace(subject, rate.est),
        basis=f"cached batches replayed, {rounds} round{'s' if rounds > 1 else ''}",
        samples_per_s_interval=rate if rate.lo is not None else None,
        not_measured={} if rate.lo is not None else {_INTERVAL: "one round has no interval"},
    ), ""


def _given_ceiling(subject: Subject, who: str, demand: float | None) -> tuple[Ceiling | None, str]:
    if demand is None:
        return None, f"the run did not record the target of the {who}"
    headspace, basis, reasons = _headspace(subject, demand), f"target of the {who}", {_INTERVAL: "given, not measured"}
    return Ceiling(samples_per_s=demand, headspace=headspace, basis=basis, not_measured=reasons), ""


def _loop_ceiling(subject: Subject) -> tuple[Ceiling | None, str]:
    wait = subject.data_wait_share.est
    if wait >= NOTHING_BUT_WAITING:
        return None, "the loop only waited for data"
    if subject.samples_per_s is None:
        return None, "batches were not counted"
    rate = subject.samples_per_s.est / (1 - wait)
    basis, reasons = "loop time between batches", {_INTERVAL: "one process has no interval"}
    return Ceiling(samples_per_s=rate, headspace=wait, basis=basis, not_measured=reasons), ""


def _headspace(subject: Subject, ceiling: float) -> float:
    rate = subject.samples_per_s.est if subject.samples_per_s else 0.0
    return min(1.0, max(0.0, 1 - rate / ceiling))
