"""A remedy that follows from the diagnosed cause: advice until a changed trial has measured it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from loaderbench.analysis.facts import Facts
from loaderbench.records import Config, Recommendation, Verdict
from loaderbench.remedies.base import Findings, Remedy
from loaderbench.remedies.snippets import python_snippet, yaml_snippet

Change = Callable[["Diagnosis"], Config]


@dataclass(frozen=True)
class Diagnosis:
    """What was found for one configuration. `config` are all its arguments, the fixed ones among them."""

    verdict: Verdict
    facts: Facts
    config: Config
    loader: Mapping[str, Any] = field(default_factory=dict)
    accelerator: bool = False

    def named(self, *, stages: str = "", limits: str = "") -> bool:
        """Whether the cause is of these stages and limits, words with blanks between; all, where none are given."""
        stage_fits = not stages or self.verdict.stage in stages.split()
        return self.verdict.bound == "input" and stage_fits and (not limits or self.verdict.limit in limits.split())


@dataclass(frozen=True, kw_only=True)
class CauseRemedy:
    """One entry of the catalogue. `change` are loader arguments; where it is empty the change is in the user's code."""

    id: str
    title: str
    applies: Callable[[Diagnosis], bool]
    change: Change = lambda _: {}
    code: str | None = None
    costs: tuple[str, ...] = ()
    caveat: str | None = None

    def recommend(self, findings: Findings) -> Recommendation | None:
        """Advise it where the cause is its own and the change is not made yet."""
        diagnosis = findings.diagnosis
        if diagnosis is None or not self.applies(diagnosis):
            return None
        change = {name: value for name, value in self.change(diagnosis).items() if diagnosis.config.get(name) != value}
        changed = {**diagnosis.config, **change}
        return Recommendation(
            id=self.id,
            title=self.title.format(**changed),
            change=change,
            basis="heuristic",
            gain=None,
            status="open",
            costs=self.costs,
            evidence=diagnosis.verdict.evidence[:2],
            caveat=self.caveat,
            snippet=python_snippet(changed, diagnosis.loader) if change else self.code,
            snippet_yaml=yaml_snippet(change) if change else None,
        )


@dataclass(frozen=True)
class MeasuredFirst:
    """What the sweep measured counts; where it has but one value of the axis, the cause advises."""

    measured: Remedy
    advised: CauseRemedy

    @property
    def id(self) -> str:
        """The name of its file."""
        return self.advised.id

    def recommend(self, findings: Findings) -> Recommendation | None:
        """Ask the sweep, then the cause."""
        told = None if findings.profile else self.measured.recommend(findings)
        if told is not None and told.status != "not_checked":
            return told
        return self.advised.recommend(findings) or told
