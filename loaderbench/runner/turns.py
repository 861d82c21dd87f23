"""Inside the process of a trial that takes turns with others: the run stops all of it between its turns."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from multiprocessing import active_children
from multiprocessing.connection import Connection
from typing import Any

from loaderbench.recorder import Steps
from loaderbench.runner.board import Board
from loaderbench.runner.orders import GO_ON, Ended
from loaderbench.tracing.loader import is_loader

LOOK_S = 0.01  # for leave to end


def stands_still(batches: Any) -> bool:
    """Whether all that loads can be stopped; with a time limit for its batches a loader would take that for a hang."""
    return is_loader(batches) and not batches.timeout


def stop_workers() -> None:
    """Let the loader's workers make nothing while nobody takes it."""
    _signal_workers("SIGSTOP")


def take_turns(pipe: Connection, board: Board, steps: Steps, cycle: int) -> None:
    """Take batches until there is leave to end, and note them after each whole turn of the workers."""
    going_on = pipe.recv() == GO_ON
    _signal_workers("SIGCONT")
    batches = samples = 0
    board.begin()
    looked_s = board.now_s()
    while going_on and steps.take():
        batches, samples = batches + 1, samples + steps.samples[-1]
        if batches % cycle == 0:
            board.note(batches, samples)
        if board.now_s() - looked_s > LOOK_S:
            looked_s = board.now_s()
            going_on = not pipe.poll()
    if going_on:
        pipe.send(Ended())
        pipe.recv()


def _signal_workers(name: str) -> None:
    if not hasattr(signal, name):
        return
    for child in active_children():
        with suppress(ProcessLookupError):
            os.kill(child.pid or 0, getattr(signal, name))
