"""More rounds of one configuration, where they may decide a gate of a run with a reference run."""

from __future__ import annotations

import time
from collections.abc import Callable

from loaderbench.records import Config, Measured, config_name
from loaderbench.session.session import Session
from loaderbench.session.time_left import mean_trial_s
from loaderbench.statistics.gates import LOOKS

MORE_S = 180.0
"""For all of them, if the suite has no budget: the default budget of `ab`."""

Undecided = Callable[[Measured], Config | None]
"""The configuration of which more rounds may decide a gate; `None` where all are decided, or more would not help."""


def add_rounds(session: Session, undecided: Undecided) -> None:
    """Double the rounds of the decisive configuration and look again, up to the number of looks of the gates' level."""
    until_s = session.deadline_s or time.monotonic() + MORE_S
    done = session.plan.rounds
    for _ in range(LOOKS - 1):
        if session.found.why_partial is not None or (config := undecided(session.so_far())) is None:
            return
        for number in range(done + 1, 2 * done + 1):
            if not _measured(session, config, number, until_s):
                return
        done *= 2


def _measured(session: Session, config: Config, number: int, until_s: float) -> bool:
    """Measure one more round; whether there was time for it."""
    found, plan, more = session.found, session.plan, number - session.plan.rounds
    if time.monotonic() + mean_trial_s(found.of("sweep"), plan.trial_s) > until_s:
        return False
    planned = plan.trial(config, number)
    progress = session.time_left.until_decided("Rounds for the gate", more, until_s, found.of("sweep"))
    session.listener.trial_started(planned, progress)
    trial = session.from_earlier(planned) or session.measure(planned)
    session.listener.trial_ended(trial, progress)
    label = config_name(config)
    found.remarks["rounds"] = f"{more} more round{'s' * (more > 1)} of {label} measured to decide a gate"
    return True
