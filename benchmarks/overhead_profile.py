"""What `loaderbench profile` costs a script, against the same script alone: for `overhead.py`.

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

PROFILED = "profile"
SCRIPT = Path(__file__).with_name("overhead_script.py")


def profiled_script(workers: int, rounds: int) -> Rounds:
    """Rounds of both."""
    taken, rows = Rounds(BLOCK_STEPS), len(step_of(STEP_S).batch[0])
    script = [str(SCRIPT), str(rows), str(workers)]
    with TemporaryDirectory() as folder:
        ours = ["-m", "loaderbench", "profile", "-q", "--out", str(Path(folder) / "run")]
        with _running(script) as bare, _running([*ours, *script]) as profiled:
            pair = {BARE: bare, PROFILED: profiled}
            for block in (bare, profiled) * 4:  # the profiler reads memory once in its first second
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
