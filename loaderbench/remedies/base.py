"""What a fix knows, and how a change that the sweep measured becomes a recommendation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from loaderbench.records import (
    Config,
    Gain,
    Interval,
    Recommendation,
)
from loaderbench.remedies.findings import Findings
from loaderbench.remedies.pixels import NOT_COMPARED
from loaderbench.remedies.program import python_program, yaml_change
from loaderbench.remedies.wording import costs, evidence, savings, why_not
from loaderbench.statistics.configurations import ratio_of, ties
from loaderbench.statistics.intervals import at_another_time, excludes_one
from loaderbench.statistics.judging import WORTH_IT

AS_FAST = "No significant difference; recommended because it costs less"


class Remedy(Protocol):
    """One entry of the catalogue."""

    @property
    def id(self) -> str:
        """The name of its file."""
        ...

    def recommend(self, findings: Findings) -> Recommendation | None:
        """What this run says about it; `None` if it does not concern this run."""
        ...


def gain_at_another_time(ratio: Interval) -> Gain:
    """The gain that is printed for a measured ratio of samples/s."""
    later = at_another_time(ratio)
    return Gain("samples_per_s", later.est, later.lo, later.hi)


@dataclass(frozen=True)
class MeasuredChange:
    """A change from the baseline to another configuration of the sweep, whose gain is therefore measured.

    `cheaper`: it costs less than the baseline, and equal speed is enough to recommend it.
    """

    id: str
    title: str
    changed: Config
    caveat: str | None = None
    cheaper: bool = False

    def recommend(self, findings: Findings) -> Recommendation:
        """Compare it with the baseline in paired rounds; open if the gain is significant and not tiny."""
        change = {axis: value for axis, value in self.changed.items() if findings.baseline.get(axis) != value}
        after, before = findings.find(self.changed), findings.find(findings.baseline)
        ratio = ratio_of(self.changed, findings.baseline, findings.trials)
        if after is None or before is None or ratio is None:
            return not_checked(
                self.id, self.title, "Not checked: never measured in the same round as the baseline", change
            )
        gained = excludes_one(ratio) and ratio.est >= WORTH_IT
        as_fast = self.cheaper and ties(self.changed, findings.baseline, findings.trials)
        answer = Recommendation(
            id=self.id,
            title=self.title,
            change=change,
            basis="measured",
            gain=gain_at_another_time(ratio),
            before=before.samples_per_s,
            after=after.samples_per_s,
            status="open",
            evidence=(evidence(findings.label(before.config), before), evidence(findings.label(after.config), after)),
            trials=(*before.trials, *after.trials),
            caveat=self.caveat,
            pixels=NOT_COMPARED if findings.alters_pixels(change) else None,
        )
        if not (gained or as_fast):
            status, reason = why_not(ratio, findings.rounds)
            return replace(answer, status=status, reason=reason)
        return replace(
            answer,
            costs=(*(savings(before, after) if self.cheaper else ()), *costs(before, after)),
            caveat=self.caveat if gained else AS_FAST,
            snippet=python_program(self.changed, findings.loader, findings.options),
            snippet_yaml=yaml_change(self.changed, self.changed, findings.loader),
        )


def already_ok(id_: str, title: str, reason: str) -> Recommendation:
    """A fix that is already in place, or not needed."""
    return Recommendation(id=id_, title=title, change={}, basis=None, gain=None, status="already_ok", reason=reason)


def not_checked(id_: str, title: str, reason: str, change: Config | None = None) -> Recommendation:
    """A fix that this run could not judge, and why."""
    return Recommendation(
        id=id_, title=title, change=change or {}, basis=None, gain=None, status="not_checked", reason=reason
    )
