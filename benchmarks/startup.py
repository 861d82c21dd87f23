"""How soon things start: `--help`, `import loaderbench`, the first trial's process and each further one.

    python benchmarks/startup.py [--repeats N]

Prints a table of medians with their range. The targets: 200 ms for `--help`, 50 ms for the import; a further process
starts in milliseconds because the fork server has torch imported, where a process of its own pays seconds.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median

from rich.console import Console
from rich.table import Table

from loaderbench.runner import TrialServer

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
    """Start a process that does nothing, and see it end."""
    server.start(os.getpid).join()


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
    ]
    table = Table("what", "median", "range", "at most")
    for what, found, limit in rows:
        table.add_row(what, f"{median(found) * 1e3:.0f} ms", f"{found[0] * 1e3:.0f} to {found[-1] * 1e3:.0f} ms", limit)
    Console().print(table)


if __name__ == "__main__":
    main()
