"""Rounds are added to the configurations that are undecided, as long as that helps and there is time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from fakes import Clock, FakeMeasuring, session_of, suite

from loaderbench.records import Config
from loaderbench.session import session as session_module, sweep as sweep_step, time_left
from loaderbench.session.session import Session
from loaderbench.session.sweep import MORE_S, MoreRounds, add_rounds, measure_sweep

TWO: Config = {"num_workers": 2}
ZERO: Config = {"num_workers": 0}


def swept(monkeypatch: pytest.MonkeyPatch, takes_s: float = 1.0, **parts: Any) -> tuple[Session, FakeMeasuring]:
    """Two rounds of two configurations, measured on a clock of its own."""
    clock = Clock()
    for module in (sweep_step, session_module, time_left):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=clock))
    measuring = FakeMeasuring(clock=clock, takes_s=takes_s)
    session = session_of(measuring, suite(**parts))
    measure_sweep(session)
    measuring.asked.clear()
    return session, measuring


def add(session: Session, *answers: Sequence[Config], share: float = 1.0) -> int:
    """Add rounds while these are undecided; return how often that was asked."""
    left = list(answers)
    session.so_far = lambda: None  # type: ignore[method-assign,assignment,return-value]
    add_rounds(session, MoreRounds(lambda _: left.pop(0) if left else (), "decide a gate", share))
    return len(answers) - len(left)


def test_rounds_are_doubled_until_it_is_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    session, measuring = swept(monkeypatch)
    add(session, [TWO], [])
    assert [(one.config, one.round) for one in measuring.asked] == [(TWO, 3), (TWO, 4)]
    assert session.found.remarks == {"rounds": "2 more rounds of num_workers=2 measured to decide a gate"}


def test_there_are_as_many_looks_as_the_level_of_a_gate_allows_for(monkeypatch: pytest.MonkeyPatch) -> None:
    session, measuring = swept(monkeypatch)
    assert add(session, [TWO], [TWO], [TWO]) == 2
    assert [one.round for one in measuring.asked] == [3, 4, 5, 6, 7, 8]


def test_nothing_is_added_where_all_is_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    session, measuring = swept(monkeypatch)
    add(session, [])
    assert not measuring.asked
    assert not session.found.remarks


def test_a_pair_alternates_and_is_measured_completely_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    session, measuring = swept(monkeypatch, measure={"rounds": 2, "budget": "1000s"})
    add(session, [ZERO, TWO], [])
    assert [(one.config, one.round) for one in measuring.asked] == [(ZERO, 3), (TWO, 3), (TWO, 4), (ZERO, 4)]
    assert session.found.remarks["rounds"].startswith("2 more rounds of num_workers=0 and num_workers=2 measured")
    measuring.asked.clear()
    left_s = (session.deadline_s or 0) - session_module.time.monotonic()
    measuring.takes_s = 2.0  # as the trials of the sweep took
    add(session, [ZERO, TWO], [ZERO, TWO], share=5.0 / left_s)
    assert len(measuring.asked) == 2


@pytest.mark.parametrize(("measure", "rounds"), [({}, 2), ({"budget": "1000s"}, 6)])
def test_the_budget_ends_it(monkeypatch: pytest.MonkeyPatch, measure: dict[str, str], rounds: int) -> None:
    session, measuring = swept(monkeypatch, takes_s=MORE_S - 10, measure={**measure, "rounds": 2})
    if measure:
        session.deadline_s = (session.deadline_s or 0) + 10_000
    add(session, [TWO], [TWO])
    assert len(measuring.asked) == rounds


def test_an_incomplete_sweep_gets_no_more_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    session, measuring = swept(monkeypatch)
    session.found.why_partial = "interrupted"
    add(session, [TWO])
    assert not measuring.asked


def test_rounds_that_an_earlier_call_measured_are_in_the_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    session, measuring = swept(monkeypatch)
    known = session.plan.trial(TWO, 3)
    trial = replace(session.found.trials[0], id=known.id, config=TWO, round=3)
    session._earlier = {known.id: trial}
    session.found.trials.append(trial)
    add(session, [TWO], [])
    assert [one.round for one in measuring.asked] == [4]
    assert [one.id for one in session.found.trials].count(known.id) == 1
