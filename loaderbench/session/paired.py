"""Measures the trials of a round beside each other: all live, and one at a time runs, for a twentieth of a second.

A neighbour that comes and goes within a second then falls on all alike. Between its turns a trial stands still: all
its processes are stopped, in the middle of a batch too, and its clock is that of its turns. Each pass goes in the
reverse order of the one before, so that a drift cancels. Source: Jones and Kenward, "Design and Analysis of Cross-Over
Trials".
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence

import psutil

from loaderbench.environment import read_limits
from loaderbench.plan import PlannedTrial
from loaderbench.recorder.rules import FEWEST_BATCHES
from loaderbench.records import Failure
from loaderbench.runner import Begun, Outcome
from loaderbench.runner.guard import Guard
from loaderbench.runner.live import LiveTrial
from loaderbench.session.measuring import Measuring

LONGEST = 4.0  # times the seconds that are asked for, for batches that take long
ROOM = 2.0  # times the largest trial so far, free before another is begun

Started = Callable[[PlannedTrial], None]
Keep = Callable[[PlannedTrial, Outcome], None]


class PairedRounds:
    """Measures rounds in turns for as long as that can be done, else one trial after the other.

    It cannot where there is an accelerator, whose memory is for one; where a loader cannot be stopped, or waits so long
    for its storage that stopping it would win something; where memory is short; and elsewhere than on Linux.
    """

    def __init__(self, measure: Measuring, *, in_turns: bool) -> None:
        self._measure = measure
        self._in_turns = in_turns and sys.platform == "linux"

    def run(self, planned: Sequence[PlannedTrial], started: Started, keep: Keep) -> None:
        """Measure every trial once; `keep` is called with each outcome, also where a signal ends the round."""
        alone = self._run_in_turns(planned, started, keep) if self._in_turns else planned
        for one in alone:
            started(one)
            outcome = self._measure(one)
            keep(one, outcome)
            if outcome.trial.status == "completed":  # so that beside the others it failed for want of something
                self._in_turns = False

    def _run_in_turns(self, planned: Sequence[PlannedTrial], started: Started, keep: Keep) -> Sequence[PlannedTrial]:
        """Measure the round; return those that are to be measured alone, which are all where turns cannot be taken."""
        begun: list[Begun] = []
        with self._measure.guard() as guard:
            try:
                complete = self._begin(planned, started, begun, guard) and self._take_turns(
                    [each.live for each in begun]
                )
            except BaseException:
                self._end(begun, keep, in_turns=False)
                raise
            if not complete:
                self._in_turns = False
                self._end(begun, lambda *_: None, in_turns=False)
                return planned
            failed = [each for each in begun if not each.live.turned_s and not _hangs(each.live)]
            self._end(failed, lambda *_: None, in_turns=False)
            self._end([each for each in begun if each not in failed], keep, in_turns=True)
        return [each.live.order.planned for each in failed]

    def _begin(self, planned: Sequence[PlannedTrial], started: Started, begun: list[Begun], guard: Guard) -> bool:
        """Let each measure itself alone and then stand still; whether all can that did not fail."""
        for one in planned:
            if begun and not _is_room([each.live for each in begun]):
                return False
            started(one)
            begun.append(self._measure.begin(one))
            live = begun[-1].live
            guard.watch(live.session)
            live.follow()
            if not (live.stands_still or isinstance(live.found, Failure)):
                return False
        return True

    def _take_turns(self, lives: Sequence[LiveTrial]) -> bool:
        """Pass after pass, until each was measured long enough; whether all could be that did not fail."""
        turn_s, passes = max((live.turn_s or 0.0 for live in lives), default=0.0), 0
        while not all(self._is_measured(live) for live in lives):
            for live in lives if passes % 2 == 0 else reversed(lives):
                if live.stands_still:
                    live.take_turn(turn_s)
            passes += 1
        return all(live.turns().batches >= FEWEST_BATCHES or isinstance(live.found, Failure) for live in lives)

    def _is_measured(self, live: LiveTrial) -> bool:
        """Whether its turns were long enough, or will not become so."""
        asked_s = self._measure.turn_seconds
        enough = live.turned_s >= asked_s and live.turns().batches >= FEWEST_BATCHES
        return enough or not live.stands_still or live.turned_s >= LONGEST * asked_s

    def _end(self, begun: Sequence[Begun], keep: Keep, *, in_turns: bool) -> None:
        """End all, at once where the round did not come to its end, and keep what each has."""
        turns = [each.live.turns() if in_turns else None for each in begun]
        for each in begun:
            each.live.end(at_once=not in_turns)
        for each, taken in zip(begun, turns, strict=True):
            if each.live.followed:
                keep(each.live.order.planned, self._measure.outcome(each, taken))


def _hangs(live: LiveTrial) -> bool:
    return isinstance(live.found, Failure) and live.found.kind == "hang"


def _is_room(lives: Sequence[LiveTrial]) -> bool:
    """Whether memory and shared memory suffice for another trial of twice the size of the largest."""
    sizes = [live.sampling.pss_bytes or 0 for live in lives if not isinstance(live.found, Failure)]
    free = psutil.virtual_memory().available
    limit = read_limits().memory_bytes
    if limit is not None:
        free = min(free, limit - sum(sizes))
    return free > ROOM * max(sizes, default=0) and _is_shared_room(lives)


def _is_shared_room(lives: Sequence[LiveTrial]) -> bool:
    used = [sample.shm_bytes or 0 for live in lives for sample in live.sampling.samples]
    try:
        return shutil.disk_usage("/dev/shm").free > ROOM * max(used, default=0)
    except OSError:  # there is none
        return True
