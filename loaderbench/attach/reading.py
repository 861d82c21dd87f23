"""Interprets stacks: which are in `next()`, in an idle worker or in a stage of a sample, and at which line."""

from __future__ import annotations

import linecache
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from loaderbench.attach.around import Code, is_within, iterators_around
from loaderbench.attach.stacks import QUEUES, RATE_HZ, Stack, Stacks
from loaderbench.code_places import CodeFrame, CodeStack
from loaderbench.recorder.code_looks import code_looks_of, stage_of
from loaderbench.records import CodeLooks, StackLooks, StageLooks

FEWEST_LOOKS = 10

NO_LOADER = "the main thread was never in a DataLoader while it was watched"
IN_THREAD = "batches are taken in a background thread, whose wait is not that of the training loop"

_LOADER = "torch/utils/data/dataloader.py"
_FETCH = "torch/utils/data/_utils/fetch.py"
_WORKER = ("torch/utils/data/_utils/worker.py", "torchdata/stateful_dataloader/worker.py")
_SPAWN = "multiprocessing/spawn.py"
_WAITING = re.compile(r"^(wait|_?poll|select|get|acquire|_wait_for_tstate_lock)$")
_AT_SAMPLER = ("_next_index", "_try_put_index")


@dataclass
class _Counted:
    """Numbers of stack samples, by what they found."""

    startup: int = 0
    starting: int = 0
    in_next: int = 0
    main: int = 0
    idle: int = 0
    waits: Counter[str] = field(default_factory=Counter)
    stages: Counter[str] = field(default_factory=Counter)
    stack_s: defaultdict[CodeStack, float] = field(default_factory=lambda: defaultdict(float))

    @property
    def at_work(self) -> int:
        return self.stages.total()

    @property
    def stack_looks(self) -> int:
        """Stack samples below the fetcher, which excludes sending a batch and code around the loader."""
        return self.at_work - self.stages["transport"] - self.stages["main_process"]


@dataclass(frozen=True)
class LoopLooks:
    """What stacks show about a training: its data wait as a share of time, and the inside of the loader.

    A value is `None` if there are too few stack samples, and `why_not` gives the reason. `senders` are the IDs of the
    threads that send the workers' batches, as far as known.
    """

    wait_share: float | None
    inside: StackLooks | None
    code: CodeLooks | None = None
    why_not: str = ""
    senders: frozenset[int] = frozenset()


def read_stacks(stacks: Stacks, pid: int, workers: int, folder: str) -> LoopLooks:
    """Interpret the stacks of one training. `folder` is its working directory, to which paths are relative."""
    if stacks.why_not:
        return LoopLooks(None, None, why_not=stacks.why_not)
    own, seen, running = (_count(some, pid, workers) for some in (stacks.own, stacks.all, stacks.running))
    if own.main < FEWEST_LOOKS:
        return LoopLooks(None, None, why_not=f"py-spy sampled the main thread only {own.main} times")
    if not own.in_next + own.startup:
        if any(stack.pid == pid and _last(stack.frames, _LOADER) is not None for stack in stacks.own):
            return LoopLooks(None, None, why_not=IN_THREAD)
        if not workers:
            return LoopLooks(None, None, why_not=NO_LOADER)
    _move_start_to_startup(own, seen, workers)
    steady = own.main - own.startup
    wait_share = own.in_next / steady if steady >= FEWEST_LOOKS else None
    if not seen.at_work:
        return LoopLooks(wait_share, None, why_not="no worker was seen at work")
    code = code_looks_of(seen.stack_s, seen.stack_looks, folder)
    return LoopLooks(wait_share, _inside(own, seen, running, workers), code, senders=stacks.senders)


def _move_start_to_startup(own: _Counted, seen: _Counted, workers: int) -> None:
    """Count the start of the workers as startup, not as the main thread's wait for batches.

    All workers start at the same time, and no batch arrives before.
    """
    if workers and seen.main:
        starting = round(own.main * seen.starting / (workers * seen.main))
        moved = min(own.waits["waiting"], starting)
        own.waits["waiting"] -= moved
        own.in_next -= moved
        own.startup += moved


def _inside(own: _Counted, seen: _Counted, running: _Counted, workers: int) -> StackLooks:
    """The record of the loader's inside. `own` counts the main process; `seen` and `running` count all processes."""
    looks = seen.at_work + seen.idle
    stages: dict[str, StageLooks] = {
        stage: StageLooks(share=count / seen.at_work, running_share=min(1.0, running.stages[stage] / count))
        for stage, count in seen.stages.most_common()
    }
    return StackLooks(
        looks=looks,
        idle_share=seen.idle / looks if workers else None,
        startup_share=own.startup / own.main,
        waits={part: count / own.in_next for part, count in own.waits.most_common() if count},
        stages=stages,
        not_measured={} if workers else {"idle_share": "the main process loads by itself"},
    )


def _count(stacks: Sequence[Stack], pid: int, workers: int) -> _Counted:
    found = _Counted()
    around = iterators_around((one.frames for one in stacks if one.pid == pid and one.is_main_thread), _LOADER)
    for stack in stacks:
        if not stack.is_main_thread:
            continue
        if stack.pid == pid:
            _count_main(stack, found, around, loads=not workers)
        elif (place := _last(stack.frames, _WORKER)) is not None:
            _count_worker(stack.frames[place + 1 :], stack.looks, found)
        elif _is_starting(stack.frames):
            found.starting += stack.looks
    return found


def _count_main(stack: Stack, found: _Counted, around: frozenset[Code], *, loads: bool) -> None:
    found.main += stack.looks
    place = next((i for i, frame in enumerate(stack.frames) if _is(frame, _LOADER)), None)
    if place is None:
        if is_within(stack.frames, around):
            found.in_next += stack.looks
            (found.stages if loads else found.waits)["main_process"] += stack.looks
        return
    ends_epoch = any(_name(frame) == "_shutdown_workers" for frame in stack.frames[place:])
    if ends_epoch or "__next__" not in stack.frames[place].function:
        found.startup += stack.looks
        return
    found.in_next += stack.looks
    if not loads:
        found.waits[_part_of_next(stack.frames[place:])] += stack.looks
    elif (fetch := _last(stack.frames, _FETCH)) is not None:
        _count_work(stack.frames[fetch:], stack.looks, found)


def _part_of_next(frames: Sequence[CodeFrame]) -> str:
    """The part of `next()` that the main process was in, if workers make the batches."""
    if any(_name(frame) in _AT_SAMPLER for frame in frames):
        return "main_process"
    return "waiting" if _WAITING.match(_name(frames[-1])) else "transport"


def _count_worker(frames: Sequence[CodeFrame], looks: int, found: _Counted) -> None:
    """Count a stack of a worker. `frames` are those below the worker's loop."""
    if frames and _is(frames[0], QUEUES) and frames[0].function.endswith("get"):
        found.idle += looks
    elif frames and _is(frames[0], QUEUES):
        found.stages["transport"] += looks
    elif (fetch := _last(frames, _FETCH)) is not None:
        _count_work(frames[fetch:], looks, found)
    elif frames and not _is(frames[0], _WORKER):
        found.starting += looks  # for example worker_init_fn


def _is_starting(frames: Sequence[CodeFrame]) -> bool:
    """Whether a spawned process is importing its modules, before it runs the worker's loop."""
    return any(_is(frame, _SPAWN) for frame in frames) and all(_name(frame) != "_bootstrap" for frame in frames)


def _count_work(frames: Sequence[CodeFrame], looks: int, found: _Counted) -> None:
    """Count a stack from the fetcher down, which loads a sample or collates a batch."""
    collating = "collate_fn(" in linecache.getline(frames[0].file, frames[0].line)
    stack = CodeStack("collate" if collating else "", tuple(frames[1:]))
    found.stages[stage_of(stack)] += looks
    found.stack_s[stack] += looks / RATE_HZ


def _name(frame: CodeFrame) -> str:
    return frame.function.rpartition(".")[2]


def _is(frame: CodeFrame, file: str | tuple[str, ...]) -> bool:
    return frame.file.endswith(file)


def _last(frames: Sequence[CodeFrame], file: str | tuple[str, ...]) -> int | None:
    return next((i for i in range(len(frames) - 1, -1, -1) if _is(frames[i], file)), None)
