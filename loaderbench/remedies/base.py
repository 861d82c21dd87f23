"""The interface of a fix, and the recommendation for a change that the sweep measured."""

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
from loaderbench.remedies.program import yaml_change
from loaderbench.remedies.wording import NOT_COMPARED, costs, evidence, savings, why_not
from loaderbench.statistics.configurations import ratio_of, rounds_of_both, ties
from loaderbench.statistics.intervals import at_another_time, excludes_one, sd_between_times
from loaderbench.statistics.judging import WORTH_IT

MAY_NOT_REPEAT = "The same comparison at another time may show no gain: rounds or the machine's speed varied too much"
AS_FAST = "No significant difference; recommended because it costs less"


class Remedy(Protocol):
    """A fix in the catalog."""

    @property
    def id(self) -> str:
        """The name of the fix's module."""
        ...

    def recommend(self, findings: Findings) -> Recommendation | None:
        """The fix's recommendation for this run; `None` if the fix does not concern the run."""
        ...


def gain_at_another_time(ratio: Interval, rounds: int, findings: Findings) -> Gain:
    """The gain to report for a ratio measured in `rounds`, with an interval that also covers a later comparison."""
    later = at_another_time(ratio, rounds, sd_between_times([*findings.trials, *findings.remedy_trials]))
    return Gain("samples_per_s", later.est, later.lo, later.hi)


def doubts(gain: Gain) -> tuple[str, ...]:
    """Whether a significant gain may be absent at another time, as evidence."""
    return (MAY_NOT_REPEAT,) if gain.lo is not None and gain.lo <= 1 else ()


@dataclass(frozen=True)
class MeasuredChange:
    """A change from the baseline to another configuration that the sweep measured.

    If `cheaper`, the changed configuration costs less than the baseline, so equal speed is enough to recommend it.
    """

    id: str
    title: str
    changed: Config
    caveat: str | None = None
    cheaper: bool = False

    def recommend(self, findings: Findings) -> Recommendation:
        """Compare the change with the baseline in paired rounds; open if the gain is significant and not tiny."""
        change = {axis: value for axis, value in self.changed.items() if findings.baseline.get(axis) != value}
        after, before = findings.find(self.changed), findings.find(findings.baseline)
        ratio = ratio_of(self.changed, findings.baseline, findings.trials)
        if after is None or before is None or ratio is None:
            return not_checked(
                self.id, self.title, "Not checked: never measured in the same round as the baseline", change
            )
        gained = excludes_one(ratio) and ratio.est >= WORTH_IT
        as_fast = self.cheaper and ties(self.changed, findings.baseline, findings.trials)
        rounds = rounds_of_both(self.changed, findings.baseline, findings.trials)
        gain = gain_at_another_time(ratio, rounds, findings)
        answer = Recommendation(
            id=self.id,
            title=self.title,
            change=change,
            basis="measured",
            gain=gain,
            before=before.samples_per_s,
            after=after.samples_per_s,
            status="open",
            evidence=(evidence(findings.label(before.config), before), evidence(findings.label(after.config), after)),
            trials=(*before.trials, *after.trials),
            caveat=self.caveat,
            pixels=NOT_COMPARED if findings.alters_pixels(change) else None,
        )
        if not (gained or as_fast):
            status, reason = why_not(ratio, findings.how_to_measure_longer)
            return replace(answer, status=status, reason=reason)
        return replace(
            answer,
            evidence=(*answer.evidence, *(doubts(gain) if gained else ())),
            costs=(
                *(savings(before, after, findings.loader) if self.cheaper else ()),
                *costs(before, after, findings.loader),
            ),
            caveat=self.caveat if gained else AS_FAST,
            snippet=findings.program(self.changed),
            snippet_yaml=yaml_change(self.changed, self.changed, findings.loader, findings.options),
        )


def already_ok(id_: str, title: str, reason: str) -> Recommendation:
    """A recommendation that is already in place or not needed."""
    return Recommendation(id=id_, title=title, change={}, basis=None, gain=None, status="already_ok", reason=reason)


def not_checked(id_: str, title: str, reason: str, change: Config | None = None) -> Recommendation:
    """A recommendation that this run could not judge, with the reason."""
    return Recommendation(
        id=id_, title=title, change=change or {}, basis=None, gain=None, status="not_checked", reason=reason
    )
