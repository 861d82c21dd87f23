"""The end of the page: how still the machine was, how it was measured, what the words mean, and the data to keep."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from loaderbench.records import RunRecord, Trial, to_dict
from loaderbench.report import axes, numbers, words
from loaderbench.report.own_cost import own_cost
from loaderbench.report.parts import Download, Fact, Term, Text
from loaderbench.report.slow_samples import file_name

MOST_TRIALS = 250  # that the page holds as JSON, 2 kB each when packed
_TRIAL_FIELDS = (
    "samples_per_s", "data_wait_share", "time_to_first_batch_s", "batches", "samples", "warmup_batches", "steady_s",
    "epoch_ends", "ended_early", "samples_per_epoch",
    "cpu_percent_of_allotted", "rss_bytes", "pss_bytes", "shm_peak_bytes", "disk_read_bytes_per_s",
    "reference_decode_before_s", "reference_decode_after_s", "started_at", "duration_s", "log",
)  # fmt: skip

GLOSSARY = (
    Term("configuration", "One point of the sweep: a value for every axis."),
    Term("trial", "One configuration measured once, in a process of its own."),
    Term("round", "Every live configuration measured once, in shuffled order."),
    Term("steady state", "The batches that are measured, after the warm-up; the first batch is timed on its own."),
    Term("data wait", "Time the consumer stands inside next() while nothing is left to compute (a data stall)."),
    Term("data wait share", "Data wait over the wall time of the steady state."),
    Term("time to first batch", "From iter(loader) to the first batch, worker start included."),
    Term("stage", "What a sample passes through: read, decode, transform, collate, transport, transfer, compute."),
    Term("consumer", "What eats the batches: a real training step, an emulated accelerator, or nothing."),
    Term("demand", "Samples/s the consumer could eat if data were free."),
    Term("ceiling", "Samples/s with loading made free: batches replayed from memory, or the demand emulated."),
    Term("headspace", "The share of time per batch that could be won: (measured \u2212 ceiling) / measured."),
    Term("interference", "What loader and consumer take together beyond the slower of the two alone."),
    Term("contention", "What a sample costs more because other workers share caches, memory, cores or a lock with it."),
    Term("ties", "Configurations whose difference is within the noise; the cheapest of them is chosen."),
    Term("verdict", "What explains the run: what bounds it, at which stage, and what limits that stage."),
)  # fmt: skip


def noise(run: RunRecord) -> tuple[Fact, ...]:
    """How far two equal measurements lay apart, and what measuring cost."""
    found, cost = run.noise, run.overhead
    facts = []
    if found.aa_difference is not None:
        ratio = numbers.gain("", found.aa_difference.est, found.aa_difference.lo, found.aa_difference.hi)
        said = f"{ratio.text} between one configuration and itself, measured as if it were two"
        facts.append(Fact("A/A difference", Text(said)))
    elif "aa_difference" in found.not_measured:
        facts.append(Fact("A/A difference", numbers.missing(found.not_measured["aa_difference"])))
    facts += _spread(run)
    facts += own_cost(cost) if cost else []
    if cost and cost.monitor_cpu_share is not None:
        facts.append(Fact("Monitors", Text(f"{numbers.percent(cost.monitor_cpu_share * 100).text} of one CPU")))
    return tuple(facts)


def _spread(run: RunRecord) -> list[Fact]:
    """The reference decode: one known JPEG, timed before and after every trial."""
    spread = run.noise.reference_decode_spread
    if spread is None:
        reason = run.noise.not_measured.get("reference_decode_spread")
        return [Fact("Reference decode", numbers.missing(reason))] if reason else []
    ratio = numbers.quantity(spread, numbers.TIMES).text
    return [
        Fact("Reference decode", Text(f"slowest {ratio} the fastest, one JPEG decoded before and after each trial"))
    ]


def method(run: RunRecord) -> tuple[str, ...]:
    """How it was measured, in the numbers of this run."""
    cache = _setting(run, "cache")
    rounds = numbers.count(run.plan.rounds, "round")
    return (
        f"Each trial ran in a process of its own. {numbers.count(run.plan.configurations, 'configuration')} were "
        f"planned for {rounds}, in an order shuffled within each round; monitors watched from outside.",
        "Samples/s and data wait share belong to the steady state, after a warm-up that fills every worker\u2019s queue"
        + (f", with a {cache} page cache." if cache else "."),
        "Intervals are 95 % by Student\u2019s t over rounds, never over the batches of one trial. Configurations that "
        "cannot be told from the fastest are ties, and the cheapest of them is called the best.",
        "GPU utilization says that a kernel was resident in the sampling period, not that the device was busy: it is "
        "context, never the proof.",
    )


def _setting(run: RunRecord, key: str) -> str | None:
    measure = run.suite.get("measure")
    value = measure.get(key) if isinstance(measure, dict) else None
    return words.plain(str(value), 20) if value else None


def downloads(run: RunRecord) -> tuple[Download, ...]:
    """The run as the page can write it back to disk; all of a very long one would be most of the page."""
    table = Download("trials.csv", "trials.csv", "text/csv", _csv(run))
    if _trials(run) > MOST_TRIALS:
        return (table,)
    text = json.dumps(_finite(to_dict(without_folders(run))), indent=1, allow_nan=False)
    return Download("run.json", "run.json", "application/json", text), table


def downloads_note(run: RunRecord) -> str | None:
    """What is left out of the page, and where it is."""
    return f"run.json, with all {_trials(run):,} trials, lies beside this page." if _trials(run) > MOST_TRIALS else None


def _trials(run: RunRecord) -> int:
    """All that were run: of the sweep, of its ladder, and of the remedies that were tried."""
    others = [part.trials for part in (run.ladder, run.verification) if part]
    return len(run.trials) + sum(map(len, others))


def without_folders(run: RunRecord) -> RunRecord:
    """The run with the names of slow files alone: a page that is passed on tells no paths."""
    noise = replace(run.noise, aa_trials=tuple(map(_names_alone, run.noise.aa_trials)))
    ladder = run.ladder and replace(run.ladder, trials=tuple(map(_names_alone, run.ladder.trials)))
    return replace(run, trials=tuple(map(_names_alone, run.trials)), noise=noise, ladder=ladder)


def _names_alone(trial: Trial) -> Trial:
    times = trial.sample_times
    if times is None:
        return trial
    slowest = tuple(replace(found, path=found.path and file_name(found.path)) for found in times.slowest)
    return replace(trial, sample_times=replace(times, slowest=slowest))


def _finite(value: Any) -> Any:
    """The value with `null` where JSON knows no number."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(held) for key, held in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [_finite(held) for held in value]
    return value


def _csv(run: RunRecord) -> str:
    names = list(axes.axis_values(run))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["trial", "round", "status", *map(_cell, names), *_TRIAL_FIELDS, "failure"])
    for trial in run.trials:
        writer.writerow(_row(trial, names))
    return out.getvalue()


def _row(trial: Trial, names: list[str]) -> list[object]:
    config = [_cell(trial.config.get(axis)) for axis in names]
    fields = [_cell(getattr(trial, field)) for field in _TRIAL_FIELDS]
    failure = _cell(trial.failure.kind if trial.failure else None)
    return [_cell(trial.id), trial.round, _cell(trial.status), *config, *fields, failure]


def _cell(value: object) -> object:
    """A value for a spreadsheet, in which a text must not become a formula."""
    if isinstance(value, str):
        safe = words.clean(value)
        return f"'{safe}" if safe.startswith(("=", "+", "-", "@", "\t")) else safe
    return "" if value is None else value
