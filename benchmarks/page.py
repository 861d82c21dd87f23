"""Measurements of the report: its size, the cost of writing it, and how soon a browser shows it.

    uv run python benchmarks/page.py [--trials 2000] [--samples 1000000] [--opens 5] [--json FILE]

The usual run is the committed example. The large run repeats that example: this many trials, over a third as many
configurations of five axes, each with its own rates, and this many monitor readings, saved to a folder. Writing is
timed in a new process, including imports, from the two files to the report; memory is the process's peak (VmHWM).
Chromium opens each report several times. First paint is the browser's own (first contentful paint), and charts count as
drawn when the report says so. Medians, with the slowest in parentheses.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import cycle, islice, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

EXAMPLE = Path(__file__).parents[1] / "reports" / "examples" / "two-cores"
LISTED = 200  # runs
METRICS = ("cpu_percent_of_allotted", "rss_bytes", "shm_bytes", "data_wait_s", "disk_read_bytes_per_s")
AXES: dict[str, list[int]] = {
    "num_workers": [0, 1, 2, 4, 6, 8, 12, 16], "batch_size": [8, 16, 32, 64, 128, 256, 512],
    "prefetch_factor": [2, 4, 8, 16], "persistent_workers": [0, 1], "worker_threads": [1, 2],
}  # fmt: skip


@dataclass(frozen=True)
class Page:
    """One report: its size, the cost of writing it, and the time until it is visible."""

    name: str
    bytes: int
    write_s: float
    peak_bytes: int
    first_paint_s: list[float]
    drawn_s: list[float]


def write_large_run(folder: Path, trials: int, samples: int) -> None:
    """Write the example's trials under new names, configurations and rates, with the requested number of readings."""
    from loaderbench.records import to_dict
    from loaderbench.statistics.configurations import summarize
    from loaderbench.store import read_run

    example = read_run(EXAMPLE)
    rng = np.random.default_rng(0)
    points = [dict(zip(AXES, values, strict=True)) for values in product(*AXES.values())]
    configs = list(islice(cycle(points), trials // 3))
    configs = [{**config, "repeat": i // len(points)} for i, config in enumerate(configs)]
    pattern = [trial for trial in example.sweep if trial.status == "completed"]
    made = [
        replace(
            pattern[i % len(pattern)], id=f"r{i // len(configs) + 1}-c{i % len(configs):04d}",
            config=configs[i % len(configs)], round=i // len(configs) + 1,
            samples_per_s=float(300 + 40 * (i % len(configs) % 17) + rng.normal(0, 5)),
        )
        for i in range(len(configs) * 3)
    ]  # fmt: skip
    ranked = summarize(configs, made)
    axes = {axis: list(values) for axis, values in AXES.items()}
    plan = replace(example.plan, axes=axes, configurations=len(configs), rounds=3, trials=len(made))
    best = replace(example.best, config=min(ranked, key=lambda c: c.rank or 10**9).config) if example.best else None
    baseline = replace(example.baseline, config=configs[0])
    run = replace(
        example, trials=tuple(made), configurations=ranked, plan=plan, best=best, baseline=baseline, verification=None
    )
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps(to_dict(run), indent=1))
    _write_timeline(folder / "timeline.parquet", [trial.id for trial in made], samples, rng)


def _write_timeline(file: Path, ids: Sequence[str], samples: int, rng: np.random.Generator) -> None:
    import pyarrow
    from pyarrow import parquet

    each = samples // (len(ids) * len(METRICS))
    table = {
        "trial": np.repeat(ids, each * len(METRICS)),
        "t_s": np.tile(np.repeat(np.arange(each) / 10, len(METRICS)), len(ids)),
        "metric": np.tile(METRICS, each * len(ids)),
        "value": rng.uniform(0, 100, each * len(ids) * len(METRICS)),
    }
    parquet.write_table(pyarrow.table(table), file, compression="zstd")


def write_page(run: Path, page: Path) -> None:
    """In the child: read the two files, build the document, write the report, and print seconds and bytes."""
    began = time.perf_counter()
    from loaderbench.result import load

    load(run).to_html(page)
    took_s = time.perf_counter() - began
    peak = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    print(json.dumps({"write_s": took_s, "peak_bytes": int(peak[1]) * 1024 if peak else 0}))


def measure(name: str, run: Path, page: Path, opens: int) -> Page:
    """Measure one report: written by a child process, opened by Chromium."""
    child = [sys.executable, __file__, "--child", str(run), str(page)]
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    kept["PYTHONPYCACHEPREFIX"] = str(page.parent / "cache")
    for _ in range(2):  # the first run compiles its imports, like the first command after an installation
        said = subprocess.run(child, check=True, stdout=subprocess.PIPE, env=kept).stdout
    told: dict[str, Any] = json.loads(said)
    seen = [_open(page) for _ in range(opens)]
    return Page(name, page.stat().st_size, **told, first_paint_s=[p for p, _ in seen], drawn_s=[d for _, d in seen])


def _open(page: Path) -> tuple[float, float]:
    """Seconds to the first text and to the last chart, in a new browser."""
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome")
    path = os.environ.get("LOADERBENCH_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        view = browser.new_page(viewport={"width": 1200, "height": 900})
        view.goto(page.as_uri())
        view.wait_for_selector("html.drawn", state="attached", timeout=60_000)
        drawn_ms = view.evaluate("performance.getEntriesByName('drawn')[0].startTime")
        paint_ms = view.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        browser.close()
    return paint_ms / 1e3, drawn_ms / 1e3


def list_of_runs_s() -> float:
    """Seconds to read a folder of runs and write its index.html."""
    from loaderbench.report.index import INDEX_FILE, update_index

    with TemporaryDirectory() as place:
        reports = Path(place)
        for number in range(LISTED):
            (reports / f"run{number}").mkdir()
            shutil.copy(EXAMPLE / "run.json", reports / f"run{number}")
        older = '<meta name="generator" content="loaderbench 0, list of runs">'  # forces the list to be written again
        (reports / INDEX_FILE).write_text(older)
        began = time.perf_counter()
        assert update_index(reports / "run0") is not None
        return time.perf_counter() - began


def row(page: Page) -> str:
    """One line of the table."""
    paint, drawn = (f"{statistics.median(x):.2f} s ({max(x):.2f})" for x in (page.first_paint_s, page.drawn_s))
    return (
        f"| {page.name} | {page.bytes / 1e6:.2f} MB | {page.write_s:.1f} s | {page.peak_bytes / 1e6:,.0f} MB "
        f"| {paint} | {drawn} |"
    )


def main() -> int:
    """Measure both reports and print the table."""
    asked = _arguments()
    if asked.child:
        write_page(*asked.child)
        return 0
    with TemporaryDirectory() as place:
        large = Path(place) / "large"
        write_large_run(large, asked.trials, asked.samples)
        pages = [
            measure("the committed example", EXAMPLE, Path(place) / "usual.html", asked.opens),
            measure(
                f"{asked.trials:,} trials, {asked.samples:,} readings", large, Path(place) / "large.html", asked.opens
            ),
        ]
    print("| page of | size | written in | memory | first paint | all charts drawn |")
    print("| --- | --: | --: | --: | --: | --: |")
    print("\n".join(map(row, pages)))
    print(f"\nThe list of {LISTED} runs like the example: {list_of_runs_s():.1f} s")
    if asked.json:
        asked.json.write_text(json.dumps([asdict(page) for page in pages], indent=1))
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--opens", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", nargs=2, type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
