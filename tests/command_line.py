"""The command as a user runs it, and called in this process; and a small suite for it."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryFile
from typing import TextIO

import pytest

from loaderbench.commands.app import main

Cli = Callable[..., "subprocess.CompletedProcess[str]"]

SMALL_SUITE = """\
name: small
dataset: {root: photos}
loader: {shuffle: true, drop_last: true}
sweep:
  batch_size: [4]
  num_workers: [0, 1]
  pin_memory: [false, true]
consumer: {kind: emulated, demand: 200}
measure: {rounds: 3, seconds: 0.1, verify: false}
"""


def loaderbench(
    *arguments: str | Path, cwd: Path, timeout_s: float = 300.0, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command as a user does."""
    return subprocess.run(
        [sys.executable, "-m", "loaderbench", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def in_process(*arguments: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Call the command here, where torch is imported and a fork server runs: the same, but for an interpreter's end."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace", write_through=True) for _ in range(2))
    code = _exit_code(arguments, cwd, environment, out, err)
    said, complained = (stream.buffer.getvalue().decode() for stream in (out, err))  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(list(map(str, arguments)), code, said, complained)


def in_process_with_children(*arguments: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The same, with what processes print that it starts, in the order in which all of them did."""
    with TemporaryFile("w+") as out, TemporaryFile("w+") as err:
        kept = [(number, os.dup(number)) for number in (1, 2)]
        try:
            for (number, _), file in zip(kept, (out, err), strict=True):
                os.dup2(file.fileno(), number)
            with _line_by_line(1) as said, _line_by_line(2) as complained:
                code = _exit_code(arguments, cwd, environment, said, complained)
        finally:
            for number, copy in kept:
                os.dup2(copy, number)
                os.close(copy)
        printed = [file.seek(0) or file.read() for file in (out, err)]
    return subprocess.CompletedProcess(list(map(str, arguments)), code, *printed)


def _line_by_line(number: int) -> TextIO:
    return open(number, "w", 1, "utf-8", "backslashreplace", closefd=False)


def _exit_code(
    arguments: tuple[str | Path, ...], cwd: Path, environment: Mapping[str, str], out: TextIO, err: TextIO
) -> int:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    with pytest.MonkeyPatch.context() as changed, redirect_stdout(out), redirect_stderr(err):
        changed.chdir(cwd)
        changed.setattr(sys, "argv", ["loaderbench", *map(str, arguments)])
        changed.setattr(sys, "path", [str(cwd), *sys.path])
        for name, value in environment.items():
            changed.setenv(name, value)
        with pytest.raises(SystemExit) as ended:
            main()
    for number, handler in handlers.items():
        signal.signal(number, handler)
    return ended.value.code if isinstance(ended.value.code, int) else 0
