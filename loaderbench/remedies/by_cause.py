"""A remedy that follows from the diagnosed cause: a changed trial where one can show it, else advice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.operational import operational_bounds
from loaderbench.records import Candidate, Config, Recommendation
from loaderbench.remedies.base import Remedy
from loaderbench.remedies.findings import Diagnosis, Findings
from loaderbench.remedies.program import python_program, yaml_change

Change = Callable[[Diagnosis], Config]


def option(**change: Any) -> Change:
    """A change to the dataset's options; none to a dataset without them, or of the user's own, whose code has them."""
    return lambda found: change if found.has_options(*change) else {}


def _nothing(_: Diagnosis) -> Config:
    return {}


@dataclass(frozen=True, kw_only=True)
class CauseRemedy:
    """One entry of the catalogue.

    `change` are arguments of the loader and options of the dataset; where it is empty the change is in the user's code,
    which `code` shows. `untried` says why no trial can show what it gives. `relieves` are the parts of a stage's time
    that are left, as others report them: what the order of trying goes by. `effort` is that of a `Candidate`.
    """

    id: str
    title: str
    applies: Callable[[Diagnosis], bool]
    change: Change = _nothing
    untried: str = ""
    relieves: Mapping[str, float] = field(default_factory=dict)
    effort: int = 1
    code: str | None = None
    costs: tuple[str, ...] = ()
    caveat: str | None = None

    @property
    def changes(self) -> bool:
        """Whether it is a change of arguments or options, and not of the user's code alone."""
        return self.change is not _nothing

    def candidate(self, diagnosis: Diagnosis) -> Candidate | None:
        """The trial that shows what it gives; `None` where it does not apply, or none can."""
        change = self._change(diagnosis)
        if self.untried or diagnosis.profile or not change or not self.applies(diagnosis):
            return None
        expected = estimate(diagnosis.facts, change, self.relieves, diagnosis.demand)
        return Candidate(self.id, change, expected, self.effort)

    def recommend(self, findings: Findings) -> Recommendation | None:
        """Advise it where the cause is its own and the change is not made yet."""
        return next((advice for found in findings.diagnoses if (advice := self.advise(found))), None)

    def advise(self, diagnosis: Diagnosis) -> Recommendation | None:
        """The advice for one diagnosis, before anything is tried."""
        if not self.applies(diagnosis):
            return None
        change = self._change(diagnosis)
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
            snippet=python_program(changed, diagnosis.loader, diagnosis.options) if change else self.code,
            snippet_yaml=yaml_change(change) if change else None,
            reason=self.untried or (None if change else IN_THE_CODE),
        )

    def _change(self, diagnosis: Diagnosis) -> Config:
        """What is not so yet."""
        known = {**(diagnosis.options or {}), **diagnosis.config}
        return {name: value for name, value in self.change(diagnosis).items() if known.get(name) != value}


IN_THE_CODE = "the change is in the dataset's own code, which no trial can make"


@dataclass(frozen=True)
class MeasuredFirst:
    """What the sweep measured counts; where it has but one value of the axis, the cause advises."""

    measured: Remedy
    advised: CauseRemedy

    @property
    def id(self) -> str:
        """The name of its file."""
        return self.advised.id

    def candidate(self, diagnosis: Diagnosis) -> Candidate | None:
        """The trial that shows what it gives, where the cause calls for it."""
        return self.advised.candidate(diagnosis)

    def recommend(self, findings: Findings) -> Recommendation | None:
        """Ask the sweep, then the cause."""
        advice = None if findings.profile else self.measured.recommend(findings)
        if advice is not None and advice.status != "not_checked":
            return advice
        return self.advised.recommend(findings) or advice


def estimate(facts: Facts, change: Config, relieves: Mapping[str, float], demand: float | None) -> float | None:
    """Samples/s, changed over unchanged; `None` where the costs are not known, or the change is to none of them.

    `relieves` are the parts of each stage's time that are left. Source: the asymptotic bounds of operational analysis
    with one term changed (Denning and Buzen 1978).
    """
    count = change.get("num_workers")
    workers = count if isinstance(count, int) else None
    if workers is None and not relieves:
        return None
    before = operational_bounds(facts, demand).tightest
    after = operational_bounds(_relieved(facts, relieves), demand, workers=workers).tightest
    return None if before is None or after is None or before[1] <= 0 else after[1] / before[1]


def _relieved(facts: Facts, relieves: Mapping[str, float]) -> Facts:
    cpu_s = {stage: time_s * relieves.get(stage, 1.0) for stage, time_s in facts.cpu_s.items()}
    wall_s = {stage: time_s * relieves.get(stage, 1.0) for stage, time_s in facts.wall_s.items()}
    whole = sum(facts.cpu_s.values())
    left = sum(cpu_s.values()) / whole if whole > 0 else 1.0
    return replace(
        facts, cpu_s=cpu_s, wall_s=wall_s, own_cpus=None if facts.own_cpus is None else facts.own_cpus * left
    )
