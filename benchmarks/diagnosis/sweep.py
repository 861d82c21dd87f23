"""Runs one suite through the command that users type."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.diagnosis.scenario import Sweep


def sweep(asked: Sweep) -> dict[str, Any]:
    """What `loaderbench run` concludes, beside the rates that it measured. JSON is YAML, too."""
    with tempfile.TemporaryDirectory(prefix="loaderbench-diagnosis-") as folder:
        suite, out = Path(folder, "suite.yaml"), Path(folder, "run.json")
        suite.write_text(json.dumps(dict(asked.suite)), encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "loaderbench",
            "run",
            str(suite),
            "--out",
            f"{folder}/run",
            *(["--budget", asked.budget] if asked.budget else ["--no-verify"]),
            "-q",
        ]
        command += ["--json", str(out), *(f"-P{axis}={value}" for axis, value in asked.axes.items())]
        command += ["--data", asked.data()] if asked.data else []
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        record = json.loads(out.read_text(encoding="utf-8"))
    told = {"verdict": record["verdict"], "recommendations": record["recommendations"]}
    return {**told, **_measured(record)}


def _measured(record: dict[str, Any]) -> dict[str, Any]:
    """Of the one configuration."""
    of = record["configurations"][0]
    rate, wait = of["samples_per_s"], of["data_wait_share"]
    return {"samples_per_s": rate and rate["est"], "wait_share": wait and wait["est"]}
