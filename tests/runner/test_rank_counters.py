"""Ranks are measured in the same window: none stops while another is measured, and all stop after the same step."""

from __future__ import annotations

import signal

import pytest
import torch

from loaderbench.consumers.target import TargetConsumer
from loaderbench.recorder import Rules
from loaderbench.runner.protocol import RankEnded
from loaderbench.runner.rank_counters import AHEAD, JointRules, RankCounters
from loaderbench.runner.rank_launch import STUCK_S, Advances, first_cause
from loaderbench.runner.rank_of_trial import _has_host_clock


def rank_counters(ranks: int) -> RankCounters:
    return RankCounters([0.0] * RankCounters.size(ranks), ranks)


def at_rate(steps_per_s: float, seconds: float) -> list[float]:
    return [step / steps_per_s for step in range(1, int(seconds * steps_per_s) + 2)]


def test_a_warm_rank_continues_until_all_are_warm() -> None:
    common = rank_counters(2)
    fast, slow = (JointRules.of(Rules(1.0), common, rank) for rank in (0, 1))

    assert not fast.warmed_up(at_rate(100, 1.1))
    assert not slow.warmed_up(at_rate(1, 1.0))
    assert slow.warmed_up(at_rate(1, 3.0))
    assert fast.warmed_up(at_rate(100, 3.0))


def test_ranks_at_different_rates_end_once_all_have_measured_enough() -> None:
    common = rank_counters(2)
    fast, slow = (JointRules.of(Rules(1.0, wanted=5), common, rank) for rank in (0, 1))

    assert not fast.closed(at_rate(100, 2.0), 1)
    assert not slow.closed(at_rate(2, 1.0), 1)
    assert not slow.closed(at_rate(2, 3.0), 1)  # the first rank decides
    assert fast.closed(at_rate(100, 3.1), 1)
    assert slow.closed(at_rate(2, 3.5), 1)


@pytest.mark.parametrize("first", [0, 1])
def test_ranks_in_step_end_after_the_same_step(first: int) -> None:
    common = rank_counters(2)
    rules = [JointRules.of(Rules(1.0, wanted=5), common, rank) for rank in (0, 1)]
    ended: dict[int, int] = {}
    for step in range(2, 60):
        for rank in (first, 1 - first):
            if rank not in ended and rules[rank].closed(at_rate(10, 10)[:step], 1):
                ended[rank] = step

    assert ended[0] == ended[1]
    assert ended[0] <= 11 + 1 + AHEAD


def test_a_rank_that_has_left_is_not_waited_for() -> None:
    common = rank_counters(2)
    rules = JointRules.of(Rules(1.0, wanted=5), common, 1)
    common.leave(0)

    assert rules.warmed_up(at_rate(10, 2.0))
    assert rules.closed(at_rate(10, 3.0), 1)


def seen(*looks: tuple[tuple[int, int], ...], resting: frozenset[int] = frozenset()) -> tuple[int | None, bool]:
    """Who is late after looks at the states of all ranks, each longer apart than a rank may be stuck."""
    progress = Advances(len(looks[0]))
    late = None
    now_s = progress._changed_s[0]
    for states in looks:
        now_s += 2 * STUCK_S
        late = progress.see(states, set(resting), now_s)
    return late, progress.all_advanced


def test_a_stuck_rank_is_late() -> None:
    assert seen(((1, 5), (1, 5)), ((1, 9), (1, 5))) == (1, True)


def test_of_several_stuck_ranks_the_one_furthest_behind_is_late() -> None:
    assert seen(((1, 6), (1, 5)), ((1, 6), (1, 5))) == (1, True)
    assert seen(((1, 5), (1, 5)), ((1, 5), (1, 5))) == (None, True)


def test_a_rank_that_only_waits_for_others_is_not_late() -> None:
    assert seen(((2, 0), (1, 0)), ((2, 0), (1, 0)), resting=frozenset({0})) == (1, True)


def test_progress_is_that_of_all_ranks() -> None:
    progress = Advances(2)
    progress.see([(1, 1), (1, 1)], set(), 0.0)
    progress.begin()
    progress.see([(1, 2), (1, 1)], set(), 0.1)
    assert not progress.all_advanced
    progress.see([(1, 2), (1, 2)], set(), 0.2)
    assert progress.all_advanced


@pytest.mark.parametrize(
    ("exit_codes", "cause"),
    [
        ([-signal.SIGTERM, -signal.SIGKILL], 1),
        ([-signal.SIGTERM, 0, -signal.SIGTERM], 1),
        ([-signal.SIGTERM, -signal.SIGTERM], 0),
        ([-signal.SIGSEGV, -signal.SIGTERM], 0),
        ([], None),
    ],
)
def test_of_ranks_that_ended_one_that_the_launcher_terminated_is_not_the_cause(
    exit_codes: list[int], cause: int | None
) -> None:
    found = first_cause([RankEnded(rank, code) for rank, code in enumerate(exit_codes)])

    assert (None if found is None else found.rank) == cause


@pytest.mark.skipif(torch.cuda.is_available(), reason="the step's clock may then be a device's")
def test_a_step_of_the_user_s_on_the_cpu_is_compared_between_ranks() -> None:
    assert _has_host_clock(TargetConsumer(print))


def test_steps_of_another_device_end_before_it_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loaderbench.consumers.device_clock.other_kind_in_use", lambda: "xpu")
    assert not _has_host_clock(TargetConsumer(print))
