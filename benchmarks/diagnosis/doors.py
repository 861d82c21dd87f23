"""The same loop as a script: under `loaderbench profile`, and attached to while it runs."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Literal

Door = Literal["profile", "attach"]
DOORS: tuple[Door, ...] = ("profile", "attach")

LOOK_S = 8.0
START_S = 60.0  # until a loop has taken its warm-up


def through(door: Door, name: str) -> dict[str, Any]:
    """A command's verdict on the scenario's loop, which runs unchanged in a separate process."""
    with tempfile.TemporaryDirectory(prefix="loaderbench-door-") as folder:
        return _profiled(name, Path(folder)) if door == "profile" else _attached(name, Path(folder))


def _profiled(name: str, folder: Path) -> dict[str, Any]:
    told = folder / "told.json"
    loop = ["-m", "benchmarks.diagnosis.child", name, str(told), "--drive"]
    _loaderbench("profile", "--out", str(folder / "run"), "-q", *loop)
    return {**_conclusions(folder), **json.loads(told.read_text(encoding="utf-8"))}


def _attached(name: str, folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.diagnosis.child", name, str(folder / "ready"), "--endless"]
    loop = subprocess.Popen(command)
    try:
        began_s = time.monotonic()
        while not (folder / "ready").exists():
            if loop.poll() is not None or time.monotonic() > began_s + START_S:
                return {"failure": "the loop did not start"}
            time.sleep(0.1)
        _loaderbench("attach", str(loop.pid), "--seconds", str(LOOK_S), "--out", str(folder / "run"), "-q")
    finally:
        loop.kill()
        loop.wait()
    return _conclusions(folder)


def _loaderbench(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "loaderbench", *arguments], check=True, stdin=subprocess.DEVNULL)


def _conclusions(folder: Path) -> dict[str, Any]:
    record = json.loads((folder / "run" / "run.json").read_text(encoding="utf-8"))
    return {"verdict": record["verdict"], "recommendations": record["recommendations"]}
