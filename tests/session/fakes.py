"""What a session works with, in memory: a plan, a measuring that answers at once, a store and a listener that note."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from machine import TWO_CPUS

from loaderbench.datasets import Inputs
from loaderbench.plan import Plan, make_plan
from loaderbench.records import (
    Config,
    DatasetSummary,
    Failure,
    FormatCopy,
    Measured,
    PlannedTrial,
    Readings,
    Reasons,
    TimelinePoint,
    Trial,
)
from loaderbench.runner import TrialOutcome
from loaderbench.session.inputs import RunInputs
from loaderbench.session.listener import Progress
from loaderbench.session.session import Session
from loaderbench.suite import Suite

FILES = tuple((f"{number}.jpg", 0) for number in range(10_000))
Rate = Callable[[PlannedTrial], float | None]


def suite(**parts: Any) -> Suite:
    """A suite of two configurations and two rounds."""
    return Suite.model_validate(
        {
            "sweep": {"num_workers": [0, 2]},
            **parts,
            "measure": {"rounds": 2, "seconds": 1.0, **parts.get("measure", {})},
        }
    )


def plan_of(found: Suite, consumer: str = "none", *, accelerator: bool = False) -> Plan:
    """Its plan on two CPUs."""
    return make_plan(found, cpus_allotted=2, accelerator=accelerator, consumer=consumer)


def planned(name: str, config: Config | None = None, number: int = 1, **fields: Any) -> PlannedTrial:
    """One trial to be measured."""
    return PlannedTrial(id=name, config=config or {}, round=number, **{"role": "sweep", **fields})


def trial_of(one: PlannedTrial, rate: float | None = 100.0, **fields: Any) -> Trial:
    """What came of it; a rate of `None` is a failure."""
    known: dict[str, Any] = {
        "id": one.id, "role": one.role, "config": one.config, "round": one.round, "isolation": one.isolation,
        "side": one.side, "freed": one.freed,
        "data_wait_share": 0.5, "samples": 100, "batches": 10, "steady_s": 1.0, "duration_s": 2.0,
    }  # fmt: skip
    if rate is None:
        return Trial(**known, status="failed", failure=Failure("hang", "", ""), **fields)
    return Trial(**known, status="completed", samples_per_s=rate, **fields)


class FakeMeasuring:
    """Answers at once, with a reading of a monitor for each trial."""

    def __init__(self, rate: Rate = lambda _: 100.0, clock: Clock | None = None, takes_s: float = 0.0) -> None:
        self.rate, self.clock, self.takes_s = rate, clock, takes_s
        self.asked: list[PlannedTrial] = []
        self.files_alone: int | None = None

    def __call__(self, one: PlannedTrial) -> TrialOutcome:
        self.asked.append(one)
        if self.clock is not None:
            self.clock.now_s += self.takes_s
        return TrialOutcome(trial_of(one, self.rate(one)), [TimelinePoint(one.id, 0.1, "rss_bytes", 1.0)])

    def write_copies(self, configs: Sequence[Config], until_s: float = math.inf) -> tuple[FormatCopy, ...]:
        """Of a dataset that has none."""
        return ()


class Clock:
    """A monotonic clock that goes on when somebody says so."""

    def __init__(self, now_s: float = 1000.0) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s


class Notes:
    """Hears what a session does, and what it writes."""

    def __init__(self) -> None:
        self.started: list[tuple[str, Progress]] = []
        self.ended: list[tuple[str, Progress]] = []
        self.kept: list[Trial] = []

    def doing(self, what: str) -> None:
        pass

    def generating(self, done: int, total: int) -> None:
        pass

    def writing(self, name: str, done: int, total: int) -> None:
        pass

    def trial_started(self, one: PlannedTrial, progress: Progress) -> None:
        self.started.append((one.id, progress))

    def trial_ended(self, trial: Trial, progress: Progress) -> None:
        self.ended.append((trial.id, progress))

    def append(self, trial: Trial) -> None:
        self.kept.append(trial)


def session_of(
    measuring: FakeMeasuring,
    found: Suite | None = None,
    notes: Notes | None = None,
    earlier: Any = None,
    **conditions: Any,
) -> Session:
    """A session of fakes."""
    known, notes = found or suite(), notes or Notes()
    made = SimpleNamespace(
        loaded=SimpleNamespace(suite=known),
        plan=conditions.pop("plan", None) or plan_of(known),
        inputs=RunInputs({known.dataset.choice_of_data: Inputs(FILES, DatasetSummary(""))}),
        consumer="none",
        accelerator=False,
        environment=TWO_CPUS,
        measured=measured,
    )
    vars(made).update(conditions)
    fake: Any = notes
    measure: Any = measuring
    return Session(made, measure, store=fake, listener=fake, earlier=earlier)  # type: ignore[arg-type]


def conditions_of(found: Suite, files: int, consumer: str = "none", *, accelerator: bool = False) -> Any:
    """What its isolation runs are planned from, with this many files."""
    return SimpleNamespace(
        loaded=SimpleNamespace(suite=found),
        plan=plan_of(found, consumer, accelerator=accelerator),
        inputs=SimpleNamespace(samples=lambda _: range(files)),
        consumer=consumer,
        accelerator=accelerator,
    )


def measured(left_out: Reasons, why_partial: str | None) -> Measured:
    """What the conditions of a run know before its first trial."""
    return Measured(
        name="",
        suite={},
        environment=TWO_CPUS,
        dataset=DatasetSummary(""),
        plan=plan_of(suite()).summary(),
        started_at="",
        finished_at="",
        complete=why_partial is None,
        consumer="none",
        trials=(),
        left_out=dict(left_out),
        notes=() if why_partial is None else (why_partial,),
    )


def earlier_of(*trials: Trial) -> Any:
    """What an earlier call has left."""
    timeline = Readings([TimelinePoint(trial.id, 0.5, "rss_bytes", 2.0) for trial in trials])
    return SimpleNamespace(trials={trial.id: trial for trial in trials}, readings=timeline)
