"""Cost of `loaderbench profile` for a script: for `overhead.py`.

In one process, short turns alternate between a recorded loader and an unrecorded one, because the duration of the same
step differs by up to a tenth between processes. Most turns are recorded. Threads run during all, so their CPU time is
added separately.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from overhead_loop import BARE, STEP_S, step_of
from overhead_pairs import Interval, Rounds, Spent, cpu, mean_interval, wall
from overhead_script import RECORDED_TURNS

PROFILED = "profile"
RANK, RANK_BARE = "profile of a rank", "the same rank, bare"
LIVE, LIVE_BARE = "profile --live prometheus", "the same script, bare"
WARM_UP_STEPS = 1_024  # the profiler reads memory once in its first second
ROUND_STEPS = 1_024  # it aggregates this many rows at once, so each round includes the same share of that work

Ask = Callable[[str], list[float]]


@dataclass(frozen=True)
class Profiled:
    """Blocks with and without recording in profiled processes, and loaderbench's CPU seconds in threads per step."""

    rounds: Rounds
    threads_s: float

    def added_s(self) -> Interval:
        """CPU seconds added per step, in the loop and in loaderbench's threads."""
        loop = self.rounds.added_s(PROFILED, BARE, cpu)
        return Interval(*(end + self.threads_s for end in (loop.mean, loop.lo, loop.hi)))

    def beyond_s(self, recorded: str, bare: str) -> Interval:
        """CPU seconds per step that another script costs in the loop, beyond a profiled script alone."""
        columns = (self.rounds.found[name] for name in (recorded, bare, PROFILED, BARE))
        return mean_interval(
            [
                cpu(other) - cpu(bare_other) - cpu(alone) + cpu(bare)
                for other, bare_other, alone, bare in zip(*columns, strict=True)
            ]
        )

    def wall_added_s(self) -> Interval:
        """Wall seconds added per step."""
        return self.rounds.added_s(PROFILED, BARE, wall)


def profiled_script(workers: int, rounds: int) -> Profiled:
    """Rounds of both loaders in one process."""
    with TemporaryDirectory() as folder, _running(_profile(folder) + _script(workers)) as ask:
        return _taken({(PROFILED, BARE): ask}, rounds)


def profiled_rank(rounds: int) -> Profiled:
    """Rounds of a script alone, and as the first of two ranks under torchrun, each with one worker."""
    script = _script(1)
    with TemporaryDirectory() as folder:
        alone = _profile(f"{folder}/alone") + script
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        rank = [*_profile(f"{folder}/ranks"), "--", *torchrun, *script, f"{folder}/done"]
        with _running(alone) as ask, _running(rank) as ask_rank:
            return _taken({(PROFILED, BARE): ask, (RANK, RANK_BARE): ask_rank}, rounds)


def profiled_live(rounds: int) -> Profiled:
    """Rounds of a script alone, and of one that a tracker follows, each with one worker."""
    script = _script(1)
    with TemporaryDirectory() as folder:
        live = ["--live", f"prometheus={folder}/live.prom"]
        scripts = _profile(f"{folder}/alone") + script, _profile(f"{folder}/live") + live + script
        with _running(scripts[0]) as ask, _running(scripts[1]) as ask_live:
            return _taken({(PROFILED, BARE): ask, (LIVE, LIVE_BARE): ask_live}, rounds)


def _script(workers: int) -> list[str]:
    return [str(Path(__file__).with_name("overhead_script.py")), str(len(step_of(STEP_S).batch[0])), str(workers)]


def _profile(folder: str) -> list[str]:
    return ["-m", "loaderbench", "profile", "-q", "--out", str(Path(folder) / "run")]


def _taken(asks: dict[tuple[str, str], Ask], rounds: int) -> Profiled:
    """Run rounds of all scripts sequentially; each fills in its two contestants."""
    taken, (first, *_) = Rounds(steps=1), asks.values()
    for ask in asks.values():
        ask(f"{WARM_UP_STEPS}")
    (before_s,) = first("threads")
    for _ in range(rounds):
        for (recorded, bare), ask in asks.items():
            cpu_s, wall_s, bare_cpu_s, bare_wall_s = ask(f"{ROUND_STEPS}")
            taken.add(recorded, Spent(cpu_s, wall_s))
            taken.add(bare, Spent(bare_cpu_s, bare_wall_s))
    (after_s,) = first("threads")
    steps = rounds * len(asks) * ROUND_STEPS * (1 + 1 / RECORDED_TURNS)
    return Profiled(taken, (after_s - before_s) / steps)


@contextmanager
def _running(script: list[str]) -> Iterator[Ask]:
    """Start a script that answers each line with numbers."""
    process = subprocess.Popen([sys.executable, *script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    orders, answers = process.stdin, process.stdout
    if orders is None or answers is None:
        raise RuntimeError("no pipes")

    def ask(line: str) -> list[float]:
        orders.write(f"{line}\n")
        orders.flush()
        return [float(number) for number in answers.readline().split()]

    try:
        yield ask
    finally:
        orders.close()
        process.wait(60)
