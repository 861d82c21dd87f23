"""What a remedy knows, and how a change that the sweep has measured becomes a recommendation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from loaderbench.records import (
    Config,
    Gain,
    Recommendation,
)
from loaderbench.remedies.findings import Findings
from loaderbench.remedies.program import python_program, yaml_change
from loaderbench.remedies.wording import costs, evidence, savings, why_not
from loaderbench.statistics.configurations import ratio_of, ties
from loaderbench.statistics.intervals import excludes_one

AS_FAST = "as fast within the noise; it is recommended because it is cheaper"


class Remedy(Protocol):
    """One entry of the catalogue."""

    @property
    def id(self) -> str:
        """The name of its file."""
        ...

    def recommend(self, findings: Findings) -> Recommendation | None:
        """Say what this run tells of it, or `None` where it has nothing to do with this run."""
        ...


@dataclass(frozen=True)
class MeasuredChange:
    """A change from the baseline that was itself a configuration of the sweep, so that its gain is measured.

    `cheaper`: it takes less than the baseline, so that being as fast is enough.
    """

    id: str
    title: str
    changed: Config
    caveat: str | None = None
    cheaper: bool = False

    def recommend(self, findings: Findings) -> Recommendation:
        """Compare it with the baseline in paired rounds; open if the gain's interval lies above 1."""
        change = {axis: value for axis, value in self.changed.items() if findings.baseline.get(axis) != value}
        after, before = findings.find(self.changed), findings.find(findings.baseline)
        ratio = ratio_of(self.changed, findings.baseline, findings.trials)
        if after is None or before is None or ratio is None:
            return not_checked(
                self.id, self.title, "the changed configuration was not measured beside the baseline", change
            )
        gained = excludes_one(ratio) and ratio.est > 1
        as_fast = self.cheaper and ties(self.changed, findings.baseline, findings.trials)
        answer = Recommendation(
            id=self.id,
            title=self.title,
            change=change,
            basis="measured",
            gain=Gain("samples_per_s", ratio.est, ratio.lo, ratio.hi),
            status="open",
            evidence=(evidence(findings.label(before.config), before), evidence(findings.label(after.config), after)),
            trials=(*before.trials, *after.trials),
            caveat=self.caveat,
        )
        if not (gained or as_fast):
            status, reason = why_not(ratio, findings.rounds)
            return replace(answer, status=status, reason=reason)
        return replace(
            answer,
            costs=(*(savings(before, after) if self.cheaper else ()), *costs(before, after)),
            caveat=self.caveat if gained else AS_FAST,
            snippet=python_program(self.changed, findings.loader, findings.options),
            snippet_yaml=yaml_change(self.changed),
        )


def already_ok(id_: str, title: str, reason: str) -> Recommendation:
    """What the user does already, or need not do."""
    return Recommendation(id=id_, title=title, change={}, basis=None, gain=None, status="already_ok", reason=reason)


def not_checked(id_: str, title: str, reason: str, change: Config | None = None) -> Recommendation:
    """What this run could not tell, and why."""
    return Recommendation(
        id=id_, title=title, change=change or {}, basis=None, gain=None, status="not_checked", reason=reason
    )
