"""Runs one scenario in this process: `python -m benchmarks.diagnosis.child NAME FILE [--fix ID] [--planted]`.

With `--door NAME` its loop runs in another process, under a command. `--drive` and `--endless` are that other process:
the loop alone, for as long as the scenario wants, or until it is ended once it has touched FILE.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.diagnosis.doors import DOORS, through


def run_one(name: str, asked: argparse.Namespace) -> dict[str, Any]:
    import torch

    from benchmarks.diagnosis.loops import drive, look, profile
    from benchmarks.diagnosis.registry import SCENARIOS
    from benchmarks.diagnosis.scenario import Loop
    from benchmarks.diagnosis.sweep import sweep

    torch.set_num_threads(1)
    made = SCENARIOS[name].build(asked.fix)
    if asked.endless and isinstance(made, Loop):
        made = replace(made, seconds=float("inf"), ready=asked.file)
    with made.within():
        if isinstance(made, Loop) and (asked.drive or asked.endless):
            return drive(made, None)[0]
        if isinstance(made, Loop):
            return look(made) if asked.planted else profile(made)
        return sweep(made)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("file", type=Path)
    parser.add_argument("--fix")
    parser.add_argument("--planted", action="store_true")
    parser.add_argument("--door", choices=DOORS)
    parser.add_argument("--drive", action="store_true")
    parser.add_argument("--endless", action="store_true")
    asked = parser.parse_args()
    found = through(asked.door, asked.name) if asked.door else run_one(asked.name, asked)
    asked.file.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":  # spawned workers import this module again
    main()
