"""A fix that follows from the diagnosed cause: tried if a trial can measure its gain, otherwise only advised."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.operational import operational_bounds
from loaderbench.loaders import AXIS, backend_of
from loaderbench.records import Candidate, Config, Recommendation
from loaderbench.remedies.base import Remedy
from loaderbench.remedies.findings import Diagnosis, Findings
from loaderbench.remedies.program import yaml_change
from loaderbench.remedies.wording import NOT_COMPARED, argument

Change = Callable[[Diagnosis], Config]


def option(**change: Any) -> Change:
    """Return a change of dataset options; it is empty for a user's dataset, or a dataset without these options."""
    return lambda found: change if found.has_options(*change) else {}


def _nothing(_: Diagnosis) -> Config:
    return {}


def _evidence_of_cause(found: Diagnosis) -> tuple[str, ...]:
    return found.verdict.evidence[:2]


@dataclass(frozen=True, kw_only=True)
class CauseRemedy:
    """A fix for a diagnosed cause.

    Fields:
        title: Formatted with the changed configuration, the change as `{arguments}`, and `values` without a change.
        applies: Whether the fix suits a diagnosis.
        change: Loader arguments and dataset options to set. If empty, the change is in the user's code; see `code`.
        untried: Why no trial can measure the gain. `untried_for` gives the reason for one diagnosis.
        relieves: Fraction of each stage's time that remains, as reported by others. It sets the order of trials.
        effort: The effort of a `Candidate`.
        code: Code to paste if the change is in the user's code.
        changes_pixels: Whether samples differ afterwards.
        title_in_code: Replaces `title` if the change is in the user's code and the dataset lacks the trait `evident`.
        title_for: Returns a more exact title for one diagnosis, as `costs_for` and `code_for` do for costs and code.
        evidence_for: Returns the lines of evidence for one diagnosis; by default, the first two of the verdict.
        ends_contention: Whether the fix ends contention between threads. Estimates ignore contention, so such a fix
            is tried first.
    """

    id: str
    title: str
    values: Config = field(default_factory=dict)
    applies: Callable[[Diagnosis], bool]
    change: Change = _nothing
    untried: str = ""
    untried_for: Callable[[Diagnosis], str] = lambda _: ""
    relieves: Mapping[str, float] = field(default_factory=dict)
    effort: int = 1
    code: str | None = None
    costs: tuple[str, ...] = ()
    caveat: str | None = None
    changes_pixels: bool = False
    title_in_code: str = ""
    evident: str = ""
    title_for: Callable[[Diagnosis], str] | None = None
    costs_for: Callable[[Diagnosis], tuple[str, ...]] | None = None
    code_for: Callable[[Diagnosis], str] | None = None
    evidence_for: Callable[[Diagnosis], tuple[str, ...]] = _evidence_of_cause
    ends_contention: bool = False

    @property
    def changes(self) -> bool:
        """Whether the fix changes arguments or options, rather than only the user's code."""
        return self.change is not _nothing

    def candidate(self, diagnosis: Diagnosis) -> Candidate | None:
        """The trial that measures the fix's gain; `None` if the fix does not apply or no trial can measure it."""
        change = self._change(diagnosis)
        if self._why_untried(diagnosis) or diagnosis.profile or not change or not self.applies(diagnosis):
            return None
        expected = estimate(diagnosis.facts, change, self.relieves, diagnosis.demand)
        return Candidate(self.id, change, expected, self.effort, self.ends_contention)

    def recommend(self, findings: Findings) -> Recommendation | None:
        """Advise the fix if it suits a diagnosed cause and is not in place yet."""
        return next((advice for found in findings.diagnoses if (advice := self.advise(found))), None)

    def advise(self, diagnosis: Diagnosis) -> Recommendation | None:
        """The recommendation for one diagnosis, before any trial."""
        if not self.applies(diagnosis):
            return None
        change = self._change(diagnosis)
        if (asked := self.change(diagnosis)) and not change:  # the complete change is already in place, or refused
            return self._in_own_iterable(diagnosis, asked)
        changed = {**diagnosis.config, **change}
        return Recommendation(
            id=self.id,
            title=self._title(diagnosis, change),
            change=change,
            basis="heuristic",
            gain=None,
            status="open",
            costs=self.costs_for(diagnosis) if self.costs_for else self.costs,
            evidence=self.evidence_for(diagnosis),
            caveat=self.caveat,
            snippet=diagnosis.program(changed) if change else self._code(diagnosis),
            snippet_yaml=yaml_change(change, changed, diagnosis.loader, diagnosis.options) if change else None,
            reason=self._why_untried(diagnosis) or (None if change else _in_the_code(diagnosis)),
            pixels=NOT_COMPARED if self.changes_pixels else None,
        )

    def _code(self, diagnosis: Diagnosis) -> str | None:
        """Code to paste, without code of a `DataLoader` for data that needs none."""
        code = self.code_for(diagnosis) if self.code_for else self.code
        return None if diagnosis.call is not None and "loader = DataLoader(" in (code or "") else code

    def _in_own_iterable(self, diagnosis: Diagnosis, asked: Config) -> Recommendation | None:
        """The advice in words, if a target that returns an iterable of its own does not take the arguments."""
        call = diagnosis.call
        if call is None or AXIS in asked or not call.refused(asked):
            return None
        return Recommendation(
            id=self.id,
            title=self._title(diagnosis, asked),
            change={},
            basis="heuristic",
            gain=None,
            status="open",
            evidence=self.evidence_for(diagnosis),
            caveat=self.caveat,
            reason=call.why_refused(asked),
        )

    def _title(self, diagnosis: Diagnosis, change: Config) -> str:
        if self.title_for:
            return self.title_for(diagnosis)
        is_in_code = not (self.change(diagnosis) or diagnosis.has_seen(self.evident))
        title = (self.title_in_code if is_in_code else "") or self.title
        arguments = ", ".join(argument(axis, value) for axis, value in change.items())
        return title.format(**{**diagnosis.config, **self.values, **change, "arguments": arguments})

    def _why_untried(self, diagnosis: Diagnosis) -> str:
        return self.untried or self.untried_for(diagnosis)

    def _change(self, diagnosis: Diagnosis) -> Config:
        """The part of the change that is not in place yet."""
        known, change = {**(diagnosis.options or {}), **diagnosis.config}, self.change(diagnosis)
        if not _accepts(diagnosis, change):
            return {}
        return {name: value for name, value in change.items() if known.get(name) != value}


def _accepts(found: Diagnosis, change: Config) -> bool:
    """Whether the loader (the new one, if the loader changes) or the dataset accepts every name in the change.

    The iterable of a target has no other arguments than those of the target.
    """
    if found.call is not None:
        return not found.call.refused(change)
    axes = backend_of({**found.loader, **found.config, **change}).axes
    return all(name == AXIS or name in axes or found.has_options(name) for name in change)


IN_THE_CODE = "Not measured: it changes your own code"


def _in_the_code(found: Diagnosis) -> str:
    return IN_THE_CODE if found.call is None else f"Not measured: it changes the code of your {found.call.returned}"


@dataclass(frozen=True)
class MeasuredFirst:
    """A fix that prefers the sweep's measurement and falls back to advice from the cause."""

    measured: Remedy
    advised: CauseRemedy

    @property
    def id(self) -> str:
        """The name of the fix's module."""
        return self.advised.id

    def candidate(self, diagnosis: Diagnosis) -> Candidate | None:
        """The trial that measures the fix's gain, if the cause calls for it."""
        return self.advised.candidate(diagnosis)

    def recommend(self, findings: Findings) -> Recommendation | None:
        """Ask the sweep first, then the cause."""
        swept = None if findings.profile else self.measured.recommend(findings)
        if swept is not None and (swept.status == "open" or swept.basis == "measured"):
            return swept
        advised = self.advised.recommend(findings)
        if swept is None or advised is None:
            return swept or advised
        is_answered = swept.status != "not_checked" and _was_swept(advised.change, findings)
        return swept if is_answered else advised


def _was_swept(change: Config, findings: Findings) -> bool:
    """Whether the sweep measured every value of a change."""
    return all(value in findings.values(axis) for axis, value in change.items())


def estimate(facts: Facts, change: Config, relieves: Mapping[str, float], demand: float | None) -> float | None:
    """Estimate the ratio of samples/s, changed over unchanged; `None` if no cost is known or none changes.

    `relieves` holds the fraction of each stage's time that remains. Source: the asymptotic bounds of operational
    analysis with one term changed (Denning and Buzen 1978).
    """
    count = None if AXIS in change else change.get("num_workers", change.get("threads"))
    workers = count if isinstance(count, int) else None
    if workers is None and not relieves:
        return None
    before = operational_bounds(facts, demand).tightest
    after = operational_bounds(_relieved(facts, relieves), demand, workers=workers).tightest
    return None if before is None or after is None or before[1] <= 0 else after[1] / before[1]


def _relieved(facts: Facts, relieves: Mapping[str, float]) -> Facts:
    cpu_s = {stage: time_s * relieves.get(stage, 1.0) for stage, time_s in facts.cpu_s.items()}
    wall_s = {stage: time_s * relieves.get(stage, 1.0) for stage, time_s in facts.wall_s.items()}
    total = sum(facts.cpu_s.values())
    left = sum(cpu_s.values()) / total if total > 0 else 1.0
    return replace(
        facts, cpu_s=cpu_s, wall_s=wall_s, own_cpus=None if facts.own_cpus is None else facts.own_cpus * left
    )
