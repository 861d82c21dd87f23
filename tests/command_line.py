"""The command as a user runs it, and called in this process; and a small suite for it."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

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
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace", write_through=True) for _ in range(2))
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
    said, complained = (stream.buffer.getvalue().decode() for stream in (out, err))  # type: ignore[attr-defined]
    code = ended.value.code
    return subprocess.CompletedProcess(
        list(map(str, arguments)), code if isinstance(code, int) else 0, said, complained
    )
