"""What is printed: a line per scenario, the confusion matrix, and what was right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from benchmarks.diagnosis.judging import Answer
from benchmarks.diagnosis.scenario import Scenario


def line(answer: Answer) -> str:
    if answer.outcome == "failed":
        return f"{answer.name:28} FAILED: {answer.headline}"
    followed = f" [{answer.followed}]" if answer.followed else ""
    words = f"{answer.expected!s:46} {answer.told:36} {answer.confidence:7} {answer.outcome:8}"
    return f"{answer.name:28} {words}{followed} {answer.headline}"


def planted_line(scenario: Scenario, found: dict[str, Any]) -> str:
    figures = {**found, **(found.get("facts") or {})}
    told = " ".join(f"{name}={value:.3g}" for name, value in figures.items() if isinstance(value, int | float))
    return f"{scenario.name:28} {scenario.expected!s:46} {told or found}"


def scenario_table(answers: Sequence[Answer]) -> str:
    """A row per scenario, for the page of the docs."""
    head = "| scenario | planted | diagnosed | confidence | headline |\n| --- | --- | --- | --- | --- |"
    rows = [
        f"| `{answer.name}` | {str(answer.expected).replace('|', ' or ')} | {answer.told} | {answer.confidence} "
        f"| {answer.headline} |"
        for answer in answers
    ]
    return "\n".join([head, *rows])


def confusion(answers: Sequence[Answer]) -> str:
    """Bound, stage and limit, each with what was planted in rows and what was diagnosed in columns, as Markdown."""
    parts = []
    for word in ("bound", "stage", "limit"):
        counts = Counter((_planted(answer, word), getattr(answer, word) or "-") for answer in answers)
        planted, told = ([*dict.fromkeys(sorted(pair[place] for pair in counts))] for place in (0, 1))
        head = f"| {word}: planted, diagnosed | {' | '.join(told)} |\n| --- |{' --: |' * len(told)}"
        rows = [f"| {row} | {' | '.join(str(counts[row, column] or '') for column in told)} |" for row in planted]
        parts.append("\n".join([head, *rows]))
    return "\n\n".join(parts)


def _planted(answer: Answer, word: str) -> str:
    """The word that was planted; of several right ones the one that was told, else the first."""
    right = {"bound": (answer.expected.bound,), "stage": answer.expected.stages, "limit": answer.expected.limits}[word]
    told = getattr(answer, word)
    return (told if told in right else right[0]) or "-"


def summary(answers: Sequence[Answer], *, fixes: bool) -> str:
    """Shares with their counts. `unknown` stands apart from wrong."""
    ran = [answer for answer in answers if answer.outcome != "failed"]
    planted = [answer for answer in ran if not answer.healthy]
    healthy = [answer for answer in ran if answer.healthy]
    rows = {
        "right bound": _share([answer.bound == answer.expected.bound for answer in ran]),
        "right stage": _share([answer.stage in answer.expected.stages for answer in planted]),
        "right bound, stage and limit": _share([answer.outcome == "ok" for answer in planted]),
        "incomplete": _share([answer.outcome == "unknown" for answer in planted]),
        "wrong": _share([answer.outcome == "WRONG" for answer in planted]),
        "healthy, diagnosed with a problem": _count([answer.outcome == "WRONG" for answer in healthy]),
        "failed to run": _count([answer.outcome == "failed" for answer in answers]),
    }
    if fixes:
        judged = [answer.removed for answer in planted if answer.removed is not None]
        rows["first recommendation removes the cause"] = _share([bool(removed) for removed in judged])
    body = "\n".join(f"| {name} | {value} |" for name, value in rows.items())
    return f"| what | got |\n| --- | --- |\n{body}"


def _share(right: Sequence[bool]) -> str:
    return f"{100 * sum(right) / len(right):.0f}% ({_count(right)})" if right else "none of 0"


def _count(right: Sequence[bool]) -> str:
    return f"{sum(right)} of {len(right)}"
