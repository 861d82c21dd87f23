"""What a loading thread waits for: locks, other processes, and other threads of its own process.

Stack samples of the loading code also show which stage most of its library calls belong to.

A library such as Arrow or OpenCV can work in native threads, and a dataset in a thread pool or an event loop. The
loading thread then waits at a lock of the operating system, but no lock limits the work.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from loaderbench.code_places import RECEIVING
from loaderbench.diagnosis.facts import Seconds
from loaderbench.diagnosis.thresholds import MOST
from loaderbench.records import CodeLooks, StackFrame, Trial, WorkerStates

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


@dataclass(frozen=True, kw_only=True)
class ThreadWork:
    """Shares of a loading process's time in which its loading thread waits for its other threads.

    These are on a CPU for `on_cpu_share`, and in a run queue for `run_queue_share`.
    """

    on_cpu_share: float = 0.0
    run_queue_share: float = 0.0


NO_WORK = ThreadWork()

_AT_LOCKS = ("lock", "own_threads")  # of what a thread can be blocked on


def thread_work(
    states: WorkerStates | None, trials: Sequence[Trial], *, in_workers: bool, loading: float
) -> ThreadWork:
    """How long the loading thread waits while other threads of its process work; `NO_WORK` if unknown.

    `loading` is the share of the time in which it may load. The time of other threads counts only beyond that of the
    loading thread, because both could run at the same time. Threads that send batches and waits for a lock of Python do
    not count.
    """
    locked = lock_wait_share(trials)
    if states is None or not states.blocked_on or locked is None or states.are_threads:
        return NO_WORK
    waits = (_at_locks(states) if in_workers else _unexplained(states, 1 - loading)) - locked * loading
    others_on_cpu = states.library_share
    runnable = states.competing_threads / max(1, states.count or 1) - states.on_cpu_share - states.run_queue_share
    runnable = max(others_on_cpu, runnable)
    worked = max(0.0, min(waits, runnable - states.on_cpu_share))
    if not worked:
        return NO_WORK
    on_cpu = worked * others_on_cpu / runnable
    return ThreadWork(on_cpu_share=on_cpu, run_queue_share=worked - on_cpu)


def _at_locks(states: WorkerStates) -> float:
    seen = states.blocked_on or {}
    return min(sum(seen.get(kind, 0.0) for kind in _AT_LOCKS), states.blocked_share)


def _unexplained(states: WorkerStates, in_steps: float) -> float:
    """The blocked share of a main process that is neither in its steps nor seen in another wait than at a lock.

    It samples its own main thread whenever the GIL is free, so it sees too few waits at locks, but all others.
    """
    seen = sum(share for kind, share in (states.blocked_on or {}).items() if kind not in ("running", *_AT_LOCKS))
    return states.blocked_share - in_steps - seen


def with_thread_work(states: WorkerStates | None, work: ThreadWork) -> WorkerStates | None:
    """The states with this work as that of the loading thread, instead of a wait at a lock."""
    if states is None or work == NO_WORK:
        return states
    worked = work.on_cpu_share + work.run_queue_share
    seen = states.blocked_on or {}
    of_threads = min(worked, seen.get("own_threads", 0.0))
    at_lock = min(worked - of_threads, seen.get("lock", 0.0))
    return replace(
        states,
        on_cpu_share=states.on_cpu_share + work.on_cpu_share,
        run_queue_share=states.run_queue_share + work.run_queue_share,
        blocked_share=states.blocked_share - worked,
        other_threads_cpu_share=(states.other_threads_cpu_share or 0.0) - work.on_cpu_share,
        blocked_on={
            **seen,
            "own_threads": seen.get("own_threads", 0.0) - of_threads,
            "lock": seen.get("lock", 0.0) - at_lock,
            "running": seen.get("running", 0.0) + of_threads + at_lock,
        },
    )


def stages_with_thread_work(cpu_s: Seconds, wall_s: Seconds, on_cpu: float) -> Seconds:
    """CPU seconds by stage, with this share of the loading time as work; each stage has a part by its blocked time."""
    blocked_s = {stage: max(0.0, wall_s[stage] - cpu_s[stage]) for stage in cpu_s if stage in wall_s}
    all_s = sum(blocked_s.values())
    part = min(1.0, on_cpu * sum(wall_s.values()) / all_s) if all_s > 0 else 0.0
    return {stage: used_s + part * blocked_s.get(stage, 0.0) for stage, used_s in cpu_s.items()}
