"""What `loaderbench profile` costs a script, against the same script alone, and as a rank: for `overhead.py`.

Both run at the same time, and take blocks of batches in turn: one waits for its next order while the other works.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from overhead_loop import BARE, BLOCK_STEPS, STEP_S, step_of
from overhead_pairs import Block, Rounds, Spent

PROFILED, RANK = "profile", "profile of a rank"
SCRIPT = Path(__file__).with_name("overhead_script.py")


def profiled_script(workers: int, rounds: int) -> Rounds:
    """Rounds of both."""
    script = _script(workers)
    with TemporaryDirectory() as folder, _running(script) as bare, _running(_profile(folder) + script) as profiled:
        return _taken({BARE: bare, PROFILED: profiled}, rounds)


def profiled_rank(rounds: int) -> Rounds:
    """Rounds of a script by itself and as the first of two ranks under torchrun, both profiled, with one worker."""
    script = _script(1)
    with TemporaryDirectory() as folder:
        alone = _profile(f"{folder}/alone") + script
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        rank = [*_profile(f"{folder}/ranks"), "--", *torchrun, *script, f"{folder}/done"]
        with _running(alone) as single, _running(rank) as first:
            return _taken({PROFILED: single, RANK: first}, rounds)


def _script(workers: int) -> list[str]:
    return [str(SCRIPT), str(len(step_of(STEP_S).batch[0])), str(workers)]


def _profile(folder: str) -> list[str]:
    return ["-m", "loaderbench", "profile", "-q", "--out", str(Path(folder) / "run")]


def _taken(pair: dict[str, Block], rounds: int) -> Rounds:
    taken = Rounds(BLOCK_STEPS)
    for block in (*pair.values(),) * 4:  # the profiler reads memory once in its first second
        block()
    for _ in range(rounds):
        taken.take(pair)
    return taken


@contextmanager
def _running(script: list[str]) -> Iterator[Block]:
    """A script that takes a block whenever it is called."""
    process = subprocess.Popen([sys.executable, *script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    orders, answers = process.stdin, process.stdout
    if orders is None or answers is None:
        raise RuntimeError("no pipes")

    def block() -> Spent:
        orders.write(f"{BLOCK_STEPS}\n")
        orders.flush()
        cpu_s, wall_s = map(float, answers.readline().split())
        return Spent(cpu_s, wall_s)

    try:
        yield block
    finally:
        orders.close()
        process.wait(60)
