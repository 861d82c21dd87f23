"""Runs one scenario in this process: `python -m benchmarks.diagnosis.child NAME FILE [--fix ID] [--planted]`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any


def run_one(name: str, fix: str | None, *, planted: bool) -> dict[str, Any]:
    import torch

    from benchmarks.diagnosis.loops import look, profile
    from benchmarks.diagnosis.registry import SCENARIOS
    from benchmarks.diagnosis.scenario import Loop
    from benchmarks.diagnosis.sweep import sweep

    torch.set_num_threads(1)
    made = SCENARIOS[name].build(fix)
    with made.within():
        if isinstance(made, Loop):
            return look(made) if planted else profile(made)
        return sweep(made)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("file", type=Path)
    parser.add_argument("--fix")
    parser.add_argument("--planted", action="store_true")
    asked = parser.parse_args()
    found = run_one(asked.name, asked.fix, planted=asked.planted)
    asked.file.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":  # spawned workers import this module again
    main()
