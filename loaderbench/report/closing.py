"""The end of the page: how still the machine was, how it was measured, and what the words mean."""

from __future__ import annotations

from loaderbench.records import RunRecord
from loaderbench.report import numbers, words
from loaderbench.report.own_cost import own_cost
from loaderbench.report.parts import Fact, Term, Text

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
