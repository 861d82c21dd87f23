"""One scenario, one process, in a session of its own; whatever it leaves behind is ended."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TIMEOUT_S = 90.0
MARK = "LOADERBENCH_DIAGNOSIS"  # in the environment of all that a scenario starts
REPOSITORY = Path(__file__).resolve().parents[2]
_BURN = "while True: sum(range(100_000))"


def run_scenario(name: str, *flags: str) -> dict[str, Any]:
    """What the child found, or `failure` with the last it said."""
    token = f"{os.getpid()}-{secrets.token_hex(8)}"
    with tempfile.TemporaryDirectory(prefix="loaderbench-diagnosis-") as folder:
        found, log = Path(folder, "found.json"), Path(folder, "log")
        command = [sys.executable, "-m", "benchmarks.diagnosis.child", name, str(found), *flags]
        with log.open("w") as lines, _started(command, token, lines) as child:
            late = _wait(child)
        if found.exists():
            return dict(json.loads(found.read_text(encoding="utf-8")))
        said = log.read_text(encoding="utf-8", errors="replace").strip()[-2000:]
        return {"failure": f"took longer than {TIMEOUT_S:.0f} s" if late else said or f"exit {child.returncode}"}


@contextlib.contextmanager
def _started(command: list[str], token: str, lines: Any) -> Iterator[subprocess.Popen[bytes]]:
    paths = os.pathsep.join([str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, MARK: token, "PYTHONPATH": paths}
    child = subprocess.Popen(
        command, cwd=REPOSITORY, env=environment, stdout=lines, stderr=lines, start_new_session=True
    )
    try:
        yield child
    finally:
        _end(child, token)


def _wait(child: subprocess.Popen[bytes]) -> bool:
    try:
        child.wait(TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGTERM)  # `loaderbench run` ends its trials itself
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(10)
        return True
    return False


def _end(child: subprocess.Popen[bytes], token: str) -> None:
    """End its group while its number is surely its own, and all others that carry the token, in whatever session."""
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    for place in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if f"{MARK}={token}".encode() in place.read_bytes():
                os.kill(int(place.parent.name), signal.SIGKILL)


@contextlib.contextmanager
def burner(wanted: bool) -> Iterator[None]:
    """A neighbor that keeps one core busy, where it is wanted."""
    process = subprocess.Popen([sys.executable, "-c", _BURN]) if wanted else None
    try:
        yield
    finally:
        if process is not None:
            process.kill()
            process.wait()
