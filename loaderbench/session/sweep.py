"""The sweep of a run: rounds of configurations whose loaders return the same batches, and more rounds of some."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from loaderbench.loaders import AXIS, DEFAULT_BACKEND
from loaderbench.plan import Plan
from loaderbench.records import Config, Measured, Parity, PlannedTrial, config_name
from loaderbench.records.words import count
from loaderbench.search import Adaptive, Grid
from loaderbench.session.listener import Progress
from loaderbench.session.measuring import TrialMeasurer
from loaderbench.session.session import ALL_FAILED, Session
from loaderbench.session.time_left import mean_trial_s
from loaderbench.statistics.gates import LOOKS
from loaderbench.suite.model import prefetched_bytes

MORE_S = 180.0
"""Seconds for all additional rounds if the suite has no budget: the default budget of `ab`."""


@dataclass(frozen=True)
class MoreRounds:
    """Asks, after a sweep, which configurations need more rounds.

    `undecided` returns them, or nothing if all is decided or more rounds would not help. `purpose` says what the rounds
    are for, and `share` is the part of the remaining time that they may take. `of_best`: they follow the final,
    which can change the best.
    """

    undecided: Callable[[Measured], Sequence[Config]]
    purpose: str
    share: float = 1.0
    of_best: bool = False


def measure_sweep(session: Session, round_ended: Callable[[str], None] = lambda _: None) -> None:
    """Measure rounds as the plan's strategy proposes. `round_ended` is called after each but the last: `round 1 of 3`.

    An adaptive sweep cut short by its budget is complete if a configuration has enough rounds to win.
    """
    found, plan = session.found, session.plan
    search = (Adaptive if plan.is_adaptive else Grid)(plan, partial(prefetched_bytes, session.conditions.loaded.suite))
    round_, is_late = 0, False
    while found.why_partial is None and not is_late:
        proposed = search.next_round(session.of_sweep(), _trials_that_fit(session))
        if not proposed:
            break
        round_, is_late = proposed[0].round, _measure_round(session, search, proposed)
        found.dropped = search.dropped(session.of_sweep(), _why_dropped(session))
        if not is_late and round_ < plan.rounds:
            round_ended(f"round {round_} of {plan.rounds}")
        if not is_late and plan.rounds > 1 and not any(trial.status == "completed" for trial in found.trials):
            found.why_partial = ALL_FAILED
    if is_late:
        session.take_over_earlier()
    cut_short = is_late or (session.budget_s is not None and round_ < plan.fewest_rounds)
    if found.why_partial is None and cut_short and not _has_a_winner(session):
        done = len(found.of("sweep", "twin"))
        found.why_partial = f"{session.budget_used_up} was used up after {count(done, 'trial')}"


def _measure_round(session: Session, search: Grid, proposed: Sequence[PlannedTrial]) -> bool:
    """Measure these trials; return whether time was up before the last of them."""
    found, going_on = session.found, [planned.config for planned in proposed if planned.role == "sweep"]

    def progress() -> Progress:
        return session.time_left.in_sweep(found.of("sweep", "twin"), going_on)

    for planned in proposed:
        done = found.of("sweep", "twin")
        trial = session.from_earlier(planned)
        expected_s = mean_trial_s(done, session.plan.trial_s)
        if trial is None and time.monotonic() + expected_s > session.sweep_until_s:
            return True
        session.listener.trial_started(planned, progress())
        if trial is None:
            why_not = why_refused(planned.config, found.parity) or search.why_not(planned, done)
            trial = session.measure(planned) if why_not is None else session.leave_out(planned, why_not)
        session.listener.trial_ended(trial, progress())
    return False


def _why_dropped(session: Session) -> str:
    return "" if session.budget_s is None else f"{session.budget_used_up} left no time for it"


def _trials_that_fit(session: Session) -> float:
    """How many more trials the sweep has time for."""
    each_s = mean_trial_s(session.found.of("sweep", "twin"), session.plan.trial_s)
    return (session.sweep_until_s - time.monotonic()) / each_s


def _has_a_winner(session: Session) -> bool:
    """Whether an adaptive sweep measured a configuration in enough rounds; a grid must measure all of them."""
    sweep = [trial for trial in session.found.of("sweep") if trial.status == "completed"]
    rounds = Counter(tuple(trial.config.items()) for trial in sweep)
    return session.plan.is_adaptive and max(rounds.values(), default=0) >= session.plan.fewest_rounds


def compare_batches(plan: Plan, measuring: TrialMeasurer) -> tuple[Parity, ...]:
    """Compare each loader of the plan with that of torch, or with the first one if torch's is not in the plan."""
    names = list(dict.fromkeys(str(config[AXIS]) for config in plan.configurations if AXIS in config))
    if len(names) < 2:
        return ()
    against = DEFAULT_BACKEND if DEFAULT_BACKEND in names else names[0]
    first = {name: next(config for config in plan.configurations if config.get(AXIS) == name) for name in names}
    return tuple(measuring.parity(first[name], first[against]) for name in names if name != against)


def why_refused(config: Config, parity: Sequence[Parity]) -> str | None:
    """Why a configuration is not measured: its loader returns different batches."""
    for found in parity:
        if found.refused and config.get(AXIS) == found.loader:
            return f"batches of {found.loader} differ from those of {found.against}: {found.refused}"
    return None


def add_rounds(session: Session, more: MoreRounds) -> None:
    """Double the rounds of the undecided configurations and check again, at most as often as a gate's level allows."""
    now_s, deadline_s = time.monotonic(), session.deadline_s
    until_s = now_s + more.share * (MORE_S if deadline_s is None else deadline_s - now_s)
    done = session.plan.rounds
    for _ in range(LOOKS - 1):
        if session.found.why_partial is not None or not (configs := more.undecided(session.so_far())):
            return
        for number in range(done + 1, 2 * done + 1):
            if not _measure_one_more(session, configs, number, until_s):
                return
            more_rounds, named = number - session.plan.rounds, " and ".join(map(config_name, configs))
            said = f"{count(more_rounds, 'more round')} of {named} measured to {more.purpose}"
            session.found.remarks["rounds"] = said
        done *= 2


def _measure_one_more(session: Session, configs: Sequence[Config], number: int, until_s: float) -> bool:
    """Measure one more round, in the reverse order of the previous one; return whether there was time for it."""
    found, plan = session.found, session.plan
    if time.monotonic() + len(configs) * mean_trial_s(found.of("sweep"), plan.trial_s) > until_s:
        return False
    for config in configs if number % 2 else reversed(configs):
        planned = plan.trial(config, number)
        done = number - plan.rounds
        progress = session.time_left.until_decided("More rounds", done, until_s, found.of("sweep"))
        session.listener.trial_started(planned, progress)
        trial = session.from_earlier(planned) or session.measure(planned)
        session.listener.trial_ended(trial, progress)
    return True
