"""Cost of merging many ranks into one run: time and memory, from the ranks' files to the report.

    uv run python benchmarks/merging.py [--steps 100000] [--ranks 64,1024]

A loop of this many steps is recorded once, with its stages. Each simulated rank uses that recording, with a different
data wait and slightly different clocks. For each number of ranks, a new process reads the files, merges them, concludes
and writes the run folder. Prints a table (Markdown): seconds, and CPU seconds, which other programs affect less; peak
memory of that process, and its memory before; the sizes of the report and of run.json.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--ranks", default="64,1024")
    parser.add_argument("--merge", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.merge:
        print(json.dumps(merged(asked.merge)))
        return
    print("| ranks | seconds | CPU seconds | peak memory, MB | before, MB | files, MB | page, MB | run.json, MB |")
    print("| --: | --: | --: | --: | --: | --: | --: | --: |", flush=True)
    for ranks in map(int, asked.ranks.split(",")):
        with TemporaryDirectory() as place:
            files = written(Path(place), asked.steps, ranks)
            command = [sys.executable, __file__, "--merge", place]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found = json.loads(done.stdout.splitlines()[-1])
            figures = (
                found["s"],
                found["cpu_s"],
                found["peak_mb"],
                found["before_mb"],
                files,
                found["page_mb"],
                found["json_mb"],
            )
            print(f"| {ranks} | {' | '.join(f'{figure:.1f}' for figure in figures)} |", flush=True)


def written(place: Path, steps: int, ranks: int) -> float:
    """Write the files of all ranks; return their size in MB."""
    from torch import zeros
    from torch.utils.data import DataLoader, TensorDataset

    from loaderbench import Profiler
    from loaderbench.profiler.measured import measured_so_far
    from loaderbench.recorder.steps import StepTimes
    from loaderbench.script.recording import Recording, write_recordings

    with Profiler("train", trace=True) as prof:
        for _ in prof.iter(DataLoader(TensorDataset(zeros(2 * steps, 1)), batch_size=2, num_workers=1)):
            pass
    measured, readings = measured_so_far(prof.name, prof._warmup, prof._recorder, prof._observer)
    times = prof._recorder.steps()
    assert times is not None
    rng = np.random.default_rng(0)
    for rank in range(ranks):
        trial = replace(
            measured.trials[0], rank=rank, host=f"node{rank // 8}", data_wait_share=0.5 if rank == 3 else 0.02
        )
        own = StepTimes(times.keys, times.times_s + rng.normal(0, 1e-6, times.times_s.shape))
        recording = Recording(
            name="loader",
            place="train.py:1",
            rank=rank,
            measured=replace(measured, trials=(trial,)),
            readings=readings,
            steps=own,
        )
        write_recordings(place, [recording], name=f"rank{rank}")
    return sum(file.stat().st_size for file in place.glob("*.recording")) / 1e6


def merged(place: Path) -> dict[str, float]:
    """Read, merge, conclude and write in this process."""
    from loaderbench.report.document import build_document  # noqa: F401 - imported before the clock starts
    from loaderbench.script.recording import read_recordings
    from loaderbench.script.run_folders import make_run_folder, write_run_folders

    before_mb, began_s, began_cpu_s = peak_mb(), time.perf_counter(), time.process_time()
    (found,) = write_run_folders(read_recordings(place), make_run_folder("merged", place / "run"))
    took_s, cpu_s = time.perf_counter() - began_s, time.process_time() - began_cpu_s
    return {
        "s": took_s,
        "cpu_s": cpu_s,
        "peak_mb": peak_mb(),
        "before_mb": before_mb,
        "page_mb": found.page.stat().st_size / 1e6,
        "json_mb": (place / "run" / "run.json").stat().st_size / 1e6,
    }


def peak_mb() -> float:
    """Peak memory of this program alone; `getrusage` includes the process before exec."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) / 1e3


if __name__ == "__main__":
    main()
