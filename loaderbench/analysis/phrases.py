"""How a verdict is said: the cause as a sentence, and figures with their intervals."""

from __future__ import annotations

from loaderbench.analysis.cause import Cause
from loaderbench.analysis.facts import Facts
from loaderbench.analysis.saying import in_percent, in_seconds
from loaderbench.analysis.thresholds import NOTICED
from loaderbench.records import Interval

_DOING = {
    "read": "Reading",
    "decode": "Decoding",
    "transform": "Transforming",
    "collate": "Collating",
    "sample": "Making samples",
    "transport": "Bringing batches to the main process",
    "main_process": "The main process",
    "stragglers": "A few slow samples",
}


def in_words(cause: Cause, facts: Facts) -> str:
    """The cause, a sentence."""
    doing = _DOING.get(cause.stage, cause.stage)
    cpus = f"{facts.cpus:g} CPU{'' if facts.cpus == 1 else 's'}"
    spare = "" if facts.spare_cpus is None else f", while {facts.spare_cpus:.1f} of {cpus} are left"
    sentences = {
        "workers": f"{doing} keeps {_who(facts)} busy{spare}.",
        "cpu": f"{doing} takes {_most_of(facts, cpus)}.",
        "oversubscription": f"{facts.runnable_threads:.0f} threads want to run on {cpus}, mostly for {doing.lower()}.",
        "quota": f"{doing} is held back: {cause.why}.",
        "storage_latency": f"{doing} waits for an answer: {cause.why}.",
        "storage_bandwidth": f"{doing} waits for bytes: {cause.why}.",
        "lock": f"{doing} goes on in one thread at a time: {cause.why}.",
        "order": "Finished batches wait for a slow one ahead of them.",
        "startup": f"Each epoch begins with {in_seconds(facts.startup_s or 0.0)} of waiting for its first batch.",
        "memory": f"{doing} waits for memory: {cause.why}.",
    }
    return sentences.get(cause.limit or "", "")


def percent(share: Interval) -> str:
    """`27 % (24-30 %)` with an en dash; without the bracket for a single round."""
    if share.lo is None or share.hi is None:
        return f"{share.est:.0%}".replace("%", " %")
    return f"{share.est * 100:.0f} % ({share.lo * 100:.0f}\N{EN DASH}{share.hi * 100:.0f} %)"


def waits(wait: Interval) -> str:
    """How much it waits, and from where on that counts."""
    return f"data wait share {percent(wait)}; {NOTICED * 100:.0f} % or more is input-bound"


def delivers(rate: Interval) -> str:
    """Samples/s, with their interval."""
    spread = f" ({rate.lo:,.0f}\N{EN DASH}{rate.hi:,.0f})" if rate.lo is not None and rate.hi is not None else ""
    return f"{rate.est:,.0f}{spread} samples/s are delivered"


def transfers(facts: Facts) -> str:
    """How long the marked transfer takes."""
    return f"the stage `transfer` of the loop takes {in_percent(facts.transfer_share)} of all time"


def _who(facts: Facts) -> str:
    if not facts.workers:
        return "the one process that takes the batches"
    return "its worker" if facts.workers == 1 else f"{facts.workers} workers"


def _most_of(facts: Facts, cpus: str) -> str:
    if (facts.spare_cpus or 0.0) < 0.5 * facts.cpus:
        return f"most of the time, and the {cpus} are full"
    return "most of the time, in batches too short for a worker"
