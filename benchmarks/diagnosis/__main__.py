"""Is the planted cause named? Prints a line per scenario, the confusion matrix and the table of what was right.

    uv run python -m benchmarks.diagnosis [--only NAME,...] [--runs 3] [--burner] [--fixes] [--list]
                                          [--json FILE] [--table FILE]

Each scenario is a loader with one planted cause, run in a process of its own and diagnosed through a public interface:
`Profiler(trace=True)` or `loaderbench run`. `--only` takes names or their beginnings. `--burner` keeps one more core
busy. `--door profile` runs each loop as a script under `loaderbench profile`, and `--door attach` watches it with
`loaderbench attach`; suites are left out then. `--fixes` makes the change that is recommended first and measures again.
`--planted` asks the kernel instead of loaderbench, to see whether the cause is there. The exit code is 1 if a scenario
fails to run. Another LOADERBENCH_DRAWS=N in the environment draws other random scenarios.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.diagnosis.doors import DOORS
from benchmarks.diagnosis.judging import Answer, follow_advice, judge
from benchmarks.diagnosis.registry import SCENARIOS
from benchmarks.diagnosis.running import burner, run_scenario
from benchmarks.diagnosis.scenario import Scenario
from benchmarks.diagnosis.tables import confusion, line, planted_line, scenario_table, summary


def main() -> int:
    asked = _arguments()
    chosen = list(_chosen(asked.only))
    if asked.list:
        print("\n".join(f"{scenario.name:28} {scenario.expected!s:46} {scenario.why}" for scenario in chosen))
        return 0
    began_s = time.monotonic()
    with burner(asked.burner):
        answers = [answer for _ in range(asked.runs) for answer in _answers(chosen, asked)]
    if answers:
        print(f"\n{confusion(answers)}\n\n{summary(answers, fixes=asked.fixes)}")
    print(f"\n{len(chosen)} scenarios, {asked.runs} runs, {time.monotonic() - began_s:.0f} s")
    if asked.json:
        asked.json.write_text(json.dumps([answer.to_dict() for answer in answers], indent=1), encoding="utf-8")
    if asked.table:
        asked.table.write_text(scenario_table(answers) + "\n", encoding="utf-8")
    return int(any(answer.outcome == "failed" for answer in answers))


def _answers(chosen: list[Scenario], asked: argparse.Namespace) -> Iterator[Answer]:
    for scenario in chosen:
        if reason := scenario.skip():
            print(f"{scenario.name:28} skipped: {reason}", flush=True)
        elif asked.door and scenario.name.startswith("run_"):
            continue
        elif asked.planted:
            print(planted_line(scenario, run_scenario(scenario.name, "--planted")), flush=True)
        else:
            answer = judge(scenario, run_scenario(scenario.name, *(["--door", asked.door] if asked.door else [])))
            answer = follow_advice(scenario, answer) if asked.fixes else answer
            print(line(answer), flush=True)
            yield answer


def _chosen(only: str | None) -> Iterator[Scenario]:
    names = only.split(",") if only else [""]
    if unknown := [name for name in names if not any(known.startswith(name) for known in SCENARIOS)]:
        sys.exit(f"no scenario begins with {', '.join(unknown)}; --list names them")
    for scenario in SCENARIOS.values():
        if scenario.name in names or any(scenario.name.startswith(name) for name in names if name not in SCENARIOS):
            yield scenario


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="names or beginnings of names, with commas")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--burner", action="store_true")
    parser.add_argument("--door", choices=DOORS)
    parser.add_argument("--fixes", action="store_true")
    parser.add_argument("--planted", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--table", type=Path, help="write a Markdown table of the scenarios")
    parser.add_argument("--list", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
