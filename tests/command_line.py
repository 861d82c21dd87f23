"""The command as a user runs it, and a small suite for it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

Cli = Callable[..., "subprocess.CompletedProcess[str]"]

SMALL_SUITE = """\
name: small
dataset: {root: photos}
loader: {shuffle: true, drop_last: true}
sweep:
  batch_size: [4]
  num_workers: [0, 1]
  pin_memory: [false, true]
consumer: {kind: emulated, demand: 50}
measure: {rounds: 3, seconds: 0.2, verify: false}
"""


def loaderbench(*arguments: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a user does."""
    return subprocess.run(
        [sys.executable, "-m", "loaderbench", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
