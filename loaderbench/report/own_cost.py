"""What measuring took from what was measured."""

from __future__ import annotations

from loaderbench.records import Overhead
from loaderbench.report import numbers
from loaderbench.report.parts import Fact, Text

_TRACED = "per sample, measured by on/off pairs"


def own_cost(found: Overhead) -> tuple[Fact, ...]:
    """The recorder per batch, tracing per sample, and both as a share of the wall time, as far as they are known."""
    share = "" if found.share_of_wall is None else f"{numbers.percent(found.share_of_wall * 100).text} of the wall time"
    traced = found.tracing_per_sample_s
    facts = []
    if found.per_batch_s is not None:
        alone = f", {share}" if share and traced is None else ""
        facts.append(Fact("Recorder", Text(f"{numbers.duration(found.per_batch_s).text} per batch{alone}")))
    if traced is not None:
        facts.append(Fact("Tracing", Text(f"{numbers.duration(traced).text} {_TRACED}")))
        facts += [Fact("In all", Text(f"{share} at most"))] if share else []
    return tuple(facts)
