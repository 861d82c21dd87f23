"""What a terminal and a notebook show of one trial: the two tables that explain it, and a line for the rest."""

from __future__ import annotations

from loaderbench.diagnosis.wording import in_main_process, states_in_words
from loaderbench.records import Trial
from loaderbench.report import slow_samples
from loaderbench.report.parts import Fact, Table, Text
from loaderbench.report.parts_inside import Breakdown, InsidePart

_SLOWEST = 3


def glance(trial: Trial, inside: InsidePart, cost: tuple[Fact, ...]) -> tuple[Table | Fact, ...]:
    """From the step down to the slowest samples, then what measuring cost."""
    states, times = states_in_words(trial.workers).partition(": ")[2], trial.sample_times
    with_workers = not in_main_process(trial)
    blocks = [
        _first(inside.step),
        _first(inside.sample),
        Fact("Workers", Text(states)) if states else _first(inside.workers, "Workers"),
        slow_samples.slowest(times, _SLOWEST, workers=with_workers) if times and times.slowest else _first(inside.slow),
        Fact("Own cost", Text("; ".join(fact.value.text for fact in cost))) if cost else None,
    ]
    return tuple(block for block in blocks if block is not None)


def _first(part: Breakdown | None, label: str = "") -> Table | Fact | None:
    """Its first table, or why it has none."""
    if part is None or part.missing is not None:
        return Fact(label or part.title, part.missing) if part and part.missing else None
    return part.tables[0] if part.tables else None
