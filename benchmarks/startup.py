"""Startup times: `--help`, `import loaderbench`, the first trial's process, each further process, and ranks.

    python benchmarks/startup.py [--repeats N]

Prints a table of medians with their range. Targets: 200 ms for `--help`, 50 ms for the import. A further process starts
in milliseconds because the fork server has imported torch, which takes a new interpreter seconds. A trial has started
when its last rank loads its first sample.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from loaderbench.environment import describe_machine
from loaderbench.records import PlannedTrial
from loaderbench.runner import TrialOrder, TrialRunner, TrialServer
from loaderbench.suite import Suite

LOADERBENCH = [sys.executable, "-m", "loaderbench"]


def seconds(do: Callable[[], object], repeats: int) -> list[float]:
    found = []
    for _ in range(repeats):
        began_s = time.perf_counter()
        do()
        found.append(time.perf_counter() - began_s)
    return sorted(found)


def python(code: str) -> Callable[[], object]:
    return lambda: subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def command(*arguments: str) -> Callable[[], object]:
    return lambda: subprocess.run([*LOADERBENCH, *arguments], check=True, capture_output=True)


def start(server: TrialServer) -> None:
    """Start a process that does nothing, and wait for its end."""
    server.start(os.getpid).join()


TARGET = """
import os, time, torch
from pathlib import Path

class Samples(torch.utils.data.Dataset):
    def __init__(self, folder): self.file, self.is_first = Path(folder, os.environ.get("RANK", "0")), True
    def __len__(self): return 10_000
    def __getitem__(self, index):
        if self.is_first: self.file.write_text(str(time.monotonic()))
        self.is_first = False
        return torch.zeros(8)
"""


def trial_starts(server: TrialServer, ranks: int, repeats: int) -> list[float]:
    """Seconds from the request of a trial to the first sample of its last rank."""
    runner = TrialRunner(server, describe_machine(server.method, (), {}))
    found = []
    for _ in range(repeats):
        with TemporaryDirectory() as place:
            folder = Path(place)
            (folder / "lb_startup.py").write_text(TARGET)
            dataset = {"kind": "target", "target": "lb_startup:Samples", "args": {"folder": place}}
            suite = Suite.model_validate(
                {"dataset": dataset, "measure": {"seconds": 0.1}, "consumer": {"kind": "none"}}
            )
            planned = PlannedTrial(id="start", role="sweep", config={"ranks": ranks}, round=1)
            began_s = time.monotonic()
            trial = runner.run(TrialOrder(planned, suite, folder, (), "none", folder / "start.log")).trial
            assert trial.status == "completed", trial.failure
            found.append(max(float((folder / str(rank)).read_text()) for rank in range(ranks)) - began_s)
        sys.modules.pop("lb_startup", None)
    return sorted(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15)
    repeats = parser.parse_args().repeats
    server = TrialServer()
    bare = seconds(python("pass"), repeats)
    rows = [
        ("python, doing nothing", bare, ""),
        ("loaderbench --help", seconds(command("--help"), repeats), "200 ms"),
        ("loaderbench run --help", seconds(command("run", "--help"), repeats), "200 ms"),
        ("python, import loaderbench", seconds(python("import loaderbench"), repeats), "50 ms more than nothing"),
        ("python, import torchvision", seconds(python("import torchvision, os; os._exit(0)"), 2), ""),
        ("first process of the fork server", seconds(lambda: start(server), 1), ""),
        ("each further one", seconds(lambda: start(server), repeats), ""),
        ("a trial of 4 ranks", trial_starts(server, 4, min(repeats, 5)), "3 s"),
    ]
    table = Table("what", "median", "range", "at most")
    for what, found, limit in rows:
        table.add_row(what, f"{median(found) * 1e3:.0f} ms", f"{found[0] * 1e3:.0f} to {found[-1] * 1e3:.0f} ms", limit)
    Console().print(table)


if __name__ == "__main__":
    main()
