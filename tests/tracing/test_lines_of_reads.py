"""Stacks of a thread while it reads a file."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from loaderbench.tracing.block import BLOCK_BYTES, Block
from loaderbench.tracing.hooks import TimedFile
from loaderbench.tracing.lines import LineClock
from loaderbench.tracing.tracer import Tracer


def test_a_stack_of_a_read_in_progress_is_under_the_stage_of_reads(tmp_path: Path) -> None:
    """Here, the read of a decoder that waits for a pipe; most of a slow read would otherwise belong to decoding."""
    tracer, stages = Tracer(Block(bytearray(BLOCK_BYTES))), list[str]()
    clock, own, path = LineClock(tracer), threading.get_ident(), tmp_path / "pipe"
    clock._look = lambda _, stage: stages.append(stage)  # type: ignore[method-assign]
    os.mkfifo(path)
    keep = os.open(path, os.O_RDWR)  # then, opening the pipe does not wait

    def look_and_write() -> None:
        until_s = time.monotonic() + 10
        while "read" not in stages and time.monotonic() < until_s:
            clock._look_at(own)
        os.write(keep, b"data")

    writer = threading.Thread(target=look_and_write)
    tracer.clock.begin(tracer.place("sample"))
    tracer.clock.enter(tracer.decode)
    with TimedFile(str(path), tracer) as file:
        writer.start()
        assert file.read(4) == b"data"
    tracer.clock.end()
    writer.join()
    os.close(keep)
    assert stages[-1] == "read"
