"""TraceML on the same loop, in a child process, because its changes to torch cannot be undone."""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from itertools import repeat
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any

from overhead_pairs import Spent, spent

NOT_INSTALLED = "not installed: uv sync --group rivals"


class TraceML:
    """A child process with TraceML, forked to share the parent's memory layout; idle between its blocks.

    Its aggregator runs concurrently, as TraceML's documentation says (`traceml serve`), and so does the thread that
    takes samples every two seconds. Work of that thread between blocks is not counted.
    """

    def __init__(self, step: Any, steps: int) -> None:
        self._step, self._steps = step, steps
        self.why_not = "" if importlib.util.find_spec("traceml_ai") else NOT_INSTALLED

    def __enter__(self) -> TraceML:
        if not self.why_not:
            self._place = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
            self._port = free_port()
            self._aggregator = subprocess.Popen(serve(self._place.name, self._port), **silent())
            fork = multiprocessing.get_context("fork")
            self._pipe, theirs = fork.Pipe()
            run = self._step, self._steps, self._place.name, self._port
            self._child = fork.Process(target=child, args=(theirs, *run))
            self._child.start()
            self.why_not = self._pipe.recv()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.why_not == NOT_INSTALLED:
            return
        self._child.kill()
        self._aggregator.kill()
        self._child.join()
        self._aggregator.wait()
        self._place.cleanup()

    def block(self) -> Spent:
        """Make the child run one block."""
        self._pipe.send("block")
        answer: Spent = self._pipe.recv()
        return answer


def serve(place: str, port: int) -> list[str]:
    command = [str(Path(sys.executable).with_name("traceml")), "serve", "--logs-dir", place]
    return [*command, "--run-name", "overhead", "--aggregator-port", str(port)]


def silent() -> dict[str, Any]:
    return {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def child(pipe: Connection, step: Any, steps: int, place: str, port: int) -> None:
    """Report whether TraceML started, then run a block on each request."""
    os.chdir(place)
    try:
        run = traced(step, steps, place, port)
    except Exception as error:  # the other rows are still needed
        pipe.send(f"did not begin: {type(error).__name__}: {error}")
        return
    pipe.send("")
    while pipe.recv():
        pipe.send(spent(run))


def traced(step: Any, steps: int, place: str, port: int) -> Callable[[], None]:
    import traceml_ai  # type: ignore[import-untyped,import-not-found,unused-ignore]

    where = {"logs_dir": place, "session_id": "overhead", "aggregator_port": port}
    traceml_ai.init(mode="auto", on_missing_aggregator="raise", connect_timeout_sec=30.0, **where)
    batches = iter(traceml_ai.wrap_dataloader_fetch(repeat(step.batch)))

    def run() -> None:
        for _ in range(steps):
            batch = next(batches)
            with traceml_ai.trace_step(step.model):
                step(batch)

    return run


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
