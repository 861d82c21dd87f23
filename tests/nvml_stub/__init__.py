"""Builds `nvml_stub.c`, and runs programs with that library below the real `pynvml`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

NOT_SUPPORTED, DRIVER_NOT_LOADED, GPU_IS_LOST = 3, 9, 15
SOURCE = Path(__file__).with_name("nvml_stub.c")


def compiler() -> str | None:
    """A C compiler for a library that Linux loads by its name."""
    return (shutil.which("cc") or shutil.which("gcc")) if sys.platform == "linux" else None


def build(folder: Path, *, old_driver: bool = False) -> Path:
    """Compile the library into a folder, and return the folder."""
    folder.mkdir()
    command = [compiler() or "cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-Wl,-soname,libnvidia-ml.so.1"]
    command += ["-DOLD_DRIVER"] if old_driver else []
    subprocess.run([*command, str(SOURCE), "-o", str(folder / "libnvidia-ml.so.1")], check=True, timeout=60)
    return folder


class StubNvml:
    """One library and its settings, which hold from the next call of NVML on."""

    def __init__(self, library: Path, settings: Path) -> None:
        self._library, self._file = library, settings
        self._settings: dict[str, float] = {}
        self.set()

    def set(self, settings: Mapping[str, float] = {}, /, **more: float) -> None:
        """Change settings: `{"busy_percent@1": 90}` of one GPU, `busy_percent=90` of all."""
        self._settings |= {**settings, **more}
        written = self._file.with_suffix(".new")
        written.write_text("".join(f"{key} {value}\n" for key, value in self._settings.items()))
        written.replace(self._file)

    @property
    def environment(self) -> dict[str, str]:
        """What a program needs to find it; all GPUs are visible."""
        return {"LD_LIBRARY_PATH": str(self._library), "NVML_STUB": str(self._file)}

    def run_python(self, code: str, **environment: str) -> Any:
        """Run a program that prints JSON last, and return that. In its words, `set_stub` is `set` of this object."""
        finished = subprocess.run(
            [sys.executable, "-c", _HEAD + code],
            env={**_without_choice(), **self.environment, **environment, "PYTHONPATH": str(SOURCE.parents[1])},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert finished.returncode == 0, finished.stderr
        return json.loads(finished.stdout.splitlines()[-1])


_HEAD = """
import json, os, sys, time
from pathlib import Path
from dataclasses import asdict, replace
from loaderbench.records import Gpu
from loaderbench.monitors import *
from nvml_stub import *
def set_stub(**settings):
    file = Path(os.environ["NVML_STUB"])
    written = file.with_suffix(".later")  # a thread reads the file at any moment
    written.write_text(file.read_text() + "".join(f"{key} {value}\\n" for key, value in settings.items()))
    written.replace(file)
def gpu(index, uuid):
    return Gpu(index, uuid, "stub", 80_000_000_000)
def show(value):
    print(json.dumps(value))
"""


def _without_choice() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
