"""Facts from stack samples of the loading code: waits for locks, for other processes, and libraries called."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean

from loaderbench.code_places import RECEIVING
from loaderbench.diagnosis.facts import Seconds
from loaderbench.diagnosis.thresholds import MOST
from loaderbench.records import CodeLooks, StackFrame, Trial

_FROM_A_PROCESS = re.compile(r"(^|/)multiprocessing/(queues|connection)\.py$")
_OF_A_MANAGER = re.compile(r"(^|/)multiprocessing/managers\.py$")
_OF_LOCKS = re.compile(r"(^|/)multiprocessing/")
_LOCKS = re.compile(r"(?<![bc])lock\b|\.acquire\(", re.IGNORECASE)


def lock_wait_share(trials: Sequence[Trial]) -> float | None:
    """The mean share of the loading time spent in code that waits for a lock of Python, or for another process.

    `None` without stack samples.
    """
    known = [looks for trial in trials if (looks := trial.code_looks) is not None and looks.stacks]
    return fmean(map(_lock_wait_share, known)) if known else None


def _lock_wait_share(looks: CodeLooks) -> float:
    waits = {number for number, frame in enumerate(looks.frames) if _waits_for_a_lock(frame)}
    waiting_s = sum(stack.seconds for stack in looks.stacks if not waits.isdisjoint(stack.frames))
    return waiting_s / sum(stack.seconds for stack in looks.stacks)


def _waits_for_a_lock(frame: StackFrame) -> bool:
    return _OF_LOCKS.search(frame.file) is not None or _LOCKS.search(frame.text) is not None


def _first_looks(trials: Sequence[Trial]) -> CodeLooks | None:
    return next((trial.code_looks for trial in trials if trial.code_looks), None)


def fed_by(trials: Sequence[Trial]) -> str:
    """The call of Python's multiprocessing with most of the loading time, by stack samples; empty without one."""
    looks = _first_looks(trials)
    if looks is None:
        return ""
    seconds: Seconds = defaultdict(float)
    for stack in looks.stacks:
        seconds[_received_in([looks.frames[number] for number in stack.frames])] += stack.seconds
    return _most(seconds)


def _most(seconds: Seconds) -> str:
    """The name with at least half of the time; empty without one."""
    name = max(seconds, key=lambda one: seconds[one], default="")
    return name if name and seconds[name] >= MOST * sum(seconds.values()) else ""


def _received_in(frames: Sequence[StackFrame]) -> str:
    """The outermost call that receives from a queue or a pipe; empty without one, and for an object of a manager."""
    if any(_OF_A_MANAGER.search(frame.file) for frame in frames):
        return ""
    return next((frame.function for frame in frames if _receives(frame)), "")


def _receives(frame: StackFrame) -> bool:
    return _FROM_A_PROCESS.search(frame.file) is not None and frame.function.rpartition(".")[2] in RECEIVING


def mostly_in_sample(trials: Sequence[Trial]) -> str:
    """The stage that most library calls of the stage `sample` belong to, by stack samples; empty if unknown."""
    looks = _first_looks(trials)
    likely_s: Seconds = defaultdict(float)
    for stack in looks.stacks if looks else ():
        if stack.stage == "sample":
            likely_s[stack.likely_stage] += stack.seconds
    stage = _most(likely_s)
    return "" if stage == "sample" else stage
