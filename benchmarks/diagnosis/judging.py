"""Compares the diagnosis with the planted cause, and the recommended fix with its effect."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from benchmarks.diagnosis.running import run_scenario
from benchmarks.diagnosis.scenario import Expected, Scenario, Word

FASTER = 1.15
FED = 0.05  # wait share below which the cause is gone


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One scenario, once. `outcome`: ok, WRONG, unknown (nothing false was said, but not all), failed."""

    name: str
    expected: Expected
    outcome: str
    bound: Word = None
    stage: Word = None
    limit: Word = None
    confidence: Word = None
    headline: str = ""
    evidence: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    rate: float | None = None
    wait_share: float | None = None
    followed: str | None = None
    removed: bool | None = None

    @property
    def healthy(self) -> bool:
        return self.expected.bound == "compute"

    @property
    def told(self) -> str:
        return f"{self.bound}/{self.stage or '-'}/{self.limit or '-'}"

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "healthy": self.healthy}


def judge(scenario: Scenario, found: dict[str, Any]) -> Answer:
    if "failure" in found:
        return Answer(name=scenario.name, expected=scenario.expected, outcome="failed", headline=found["failure"])
    verdict = found["verdict"]
    words = (verdict["bound"], verdict["stage"], verdict["limit"])
    return Answer(
        name=scenario.name,
        expected=scenario.expected,
        outcome=_outcome(scenario.expected, *words),
        bound=words[0],
        stage=words[1],
        limit=words[2],
        confidence=verdict["confidence"],
        headline=verdict["headline"],
        evidence=tuple(verdict["evidence"]),
        advice=tuple(card["id"] for card in found["recommendations"] if card["status"] == "open"),
        rate=found.get("batches_per_s") or found.get("samples_per_s"),
        wait_share=found.get("wait_share"),
    )


def _outcome(expected: Expected, bound: Word, stage: Word, limit: Word) -> str:
    """A word that is missing is no error, a false one is. `neighbors` says nothing of the loader itself."""
    limit = None if limit == "neighbors" else limit
    if bound not in (expected.bound, "unknown", None):
        return "WRONG"
    pairs = ((stage, expected.stages), (limit, expected.limits))
    if any(word not in (*right, None) for word, right in pairs):
        return "WRONG"
    complete = bound == expected.bound and all(word in right for word, right in pairs)
    return "ok" if complete else "unknown"


def follow_advice(scenario: Scenario, answer: Answer) -> Answer:
    """Make the change that is recommended first, and measure again.

    Counts as removed where samples/s rise by 1.15 or the wait is gone, both by the loop's own clock, or where another
    cause is named now. Advice that is none of the planted cause's is followed by nobody, and removes nothing.
    """
    if answer.outcome == "failed" or not scenario.fixes:
        return answer
    first = next(iter(answer.advice), None)
    if first not in scenario.fixes:
        return replace(answer, followed=f"{first or 'nothing'}: no fix", removed=False)
    if scenario.fixes[first] == {}:  # there is nothing to change, and that is the advice
        return replace(answer, followed=first, removed=True)
    after = judge(scenario, run_scenario(scenario.name, "--fix", first))
    faster = (after.rate or 0.0) / answer.rate if answer.rate else 0.0
    fed = after.wait_share is not None and after.wait_share < FED
    other = after.outcome != "failed" and None not in (answer.stage, after.stage) and after.told != answer.told
    return replace(answer, followed=f"{first}: x{faster:.2f}", removed=faster >= FASTER or fed or other)
