"""Check that the verdict names the slow rank, and none if all are equally fast, on random jobs under torchrun.

    uv run --group storage python benchmarks/ranks.py [--seed 1] [--jobs 0:60] [--only KIND] [--results FILE]

Each job is a training of 2, 4 or 8 ranks under `loaderbench profile -- torchrun`, with DistributedDataParallel over
gloo and a step that sleeps, as if a device computed it. Planted: a rank, or half of the ranks, with slow samples; with
samples that take CPU time; with fewer workers; with files on a slow disk (FUSE); with slow steps, in the forward pass
or after the optimizer. Healthy: all fast, all equally slow, or slow samples scattered over all ranks. Prints a line for
each job and a table.

Of 70 jobs, the first 40 are planted in the loader, the next 20 are healthy, and the last 10 have slow steps. Each
depends only on the seed and its number, so a part of them (`--jobs 10:20`) is the same as in a complete run. With
`--results`, each job is immediately added to the file. Jobs in the file are not run again, and the table includes all
of them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

STEPS, TIMEOUT_S, DISK_S = 120, 300, 0.01
PLANTED_JOBS, OF_LOADER, ALL = 40, 60, 70
PLANTED, HEALTHY = ("samples", "CPU", "workers", "disk"), ("fast", "all slow", "scattered")
STEP_KINDS = ("forward", "rest")
SCRIPT = """\
import json, os, random, sys, time
from pathlib import Path
import torch
from torch import distributed, nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler

JOB = json.loads(sys.argv[1])
RANK = int(os.environ["RANK"])
MINE = JOB["slow"] if RANK in JOB["slow_ranks"] else JOB["usual"]


class Samples(Dataset):
    def __init__(self):
        self.files = sorted(Path(MINE["folder"]).glob("*.bin"))

    def __len__(self):
        return 64 * JOB["steps"] * JOB["batch_size"]

    def __getitem__(self, index):
        data = self.files[index % len(self.files)].read_bytes()
        time.sleep(MINE["blocked_s"] * (10 if random.random() < JOB["scattered"] else 1))
        ends_s = time.thread_time() + MINE["busy_s"]
        while time.thread_time() < ends_s:
            pass
        return torch.frombuffer(bytearray(data[:4096]), dtype=torch.uint8).float()


class Model(nn.Linear):
    def forward(self, inputs):
        time.sleep(MINE["forward_s"])
        return super().forward(inputs)


def main():
    torch.set_num_threads(1)
    distributed.init_process_group("gloo")
    model = nn.parallel.DistributedDataParallel(Model(4096, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = Samples()
    loader = DataLoader(
        data, batch_size=JOB["batch_size"], num_workers=MINE["workers"], sampler=DistributedSampler(data)
    )
    for step, inputs in enumerate(loader):
        optimizer.zero_grad()
        model(inputs).mean().backward()
        optimizer.step()
        time.sleep(MINE["rest_s"])
        if step == JOB["steps"]:
            break
    distributed.destroy_process_group()


main()
"""


@dataclass(frozen=True)
class Loading:
    """The cost of a rank's samples and steps, and its number of workers."""

    folder: str
    workers: int = 1
    blocked_s: float = 0.0
    busy_s: float = 0.0
    forward_s: float = 0.0
    rest_s: float = 0.0


@dataclass(frozen=True)
class Job:
    """A training job; `slow_ranks` delay the others, and are empty in a healthy job."""

    kind: str
    ranks: int
    slow_ranks: tuple[int, ...]
    batch_size: int
    usual: Loading
    slow: Loading
    scattered: float = 0.0
    steps: int = STEPS


@dataclass(frozen=True)
class Disks:
    """Two folders with the same files."""

    fast: str
    slow: str


@dataclass(frozen=True)
class Outcome:
    """The outcome of a job; `named` is the rank of the verdict, or `failed` without a verdict."""

    seed: int
    number: int
    kind: str
    right: bool
    named: int | str | None
    said: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=part_of_all, default=range(ALL), metavar="FIRST:END")
    parser.add_argument("--only", choices=(*PLANTED, *HEALTHY, *STEP_KINDS), help="one kind")
    parser.add_argument("--results", type=Path, metavar="FILE", help="JSON lines; continued if it exists")
    asked = parser.parse_args()
    outcomes = read_outcomes(asked.results)
    done = {(one.seed, one.number) for one in outcomes}
    with ExitStack() as stack:
        stack.callback(lambda: print(table(outcomes)))  # also if interrupted
        place = Path(stack.enter_context(TemporaryDirectory()))
        disks = stack.enter_context(mounted(written(place / "files"), place / "slow"))
        for number in asked.jobs:
            job = drawn(asked.seed, number, disks)
            if (asked.seed, number) not in done and asked.only in (None, job.kind):
                outcomes.append(outcome_of(job, asked.seed, number, place))
                if asked.results is not None:
                    with asked.results.open("a") as file:
                        file.write(json.dumps(asdict(outcomes[-1])) + "\n")


def part_of_all(text: str) -> range:
    """Parse `10:20`, which excludes the end."""
    first, _, end = text.partition(":")
    return range(int(first or 0), min(ALL, int(end or ALL)))


def read_outcomes(file: Path | None) -> list[Outcome]:
    """Read the outcomes of earlier calls."""
    lines = file.read_text().splitlines() if file is not None and file.exists() else []
    return [Outcome(**json.loads(line)) for line in lines]


def outcome_of(job: Job, seed: int, number: int, place: Path) -> Outcome:
    """Run a job, and print its line."""
    named = verdict_of(job, place)
    right = named["rank"] in job.slow_ranks if job.slow_ranks else named["rank"] is None
    slow = f"slow {list(job.slow_ranks)}" if job.slow_ranks else "healthy"
    print(
        f"{number:2} {'ok   ' if right else 'WRONG'} {job.kind:10} {job.ranks} ranks, {slow}: {named['said']}",
        flush=True,
    )
    return Outcome(seed, number, job.kind, right, named["rank"], named["said"])


def table(outcomes: Sequence[Outcome]) -> str:
    """The number of right verdicts, by kind, and for all planted and all healthy jobs."""
    lines = ["", "| kind | right |", "| --- | --: |"]
    every = (*PLANTED, *HEALTHY, *STEP_KINDS)
    groups = [*((kind, (kind,)) for kind in every), ("all planted", PLANTED), ("all healthy", HEALTHY)]
    for label, kinds in groups:
        found = [one.right for one in outcomes if one.kind in kinds]
        if found:
            lines.append(f"| {label} | {sum(found)} of {len(found)} |")
    return "\n".join(lines)


def drawn(seed: int, number: int, disks: Disks) -> Job:
    """Draw the job of this number: planted jobs of each kind in turn, then healthy ones, then slow steps."""
    draw = random.Random(f"{seed}/{number}")
    if number < PLANTED_JOBS:
        return planted_job(PLANTED[number % len(PLANTED)], draw, disks)
    if number < OF_LOADER:
        return healthy_job(HEALTHY[number % len(HEALTHY)], draw, disks)
    return slow_steps_job(STEP_KINDS[number % len(STEP_KINDS)], draw, disks)


def planted_job(kind: str, draw: random.Random, disks: Disks) -> Job:
    """Draw a job in which the usual loader takes up to 40% of a step, and the slow one 1.5 to 4 steps.

    With the kind `workers`, the usual loader divides its time among four workers.
    """
    ranks, batch_size, step_s = draw.choice((2, 4, 8)), draw.choice((4, 8, 16)), draw.uniform(0.02, 0.05)
    slow_ranks = tuple(sorted(draw.sample(range(ranks), ranks // 2 if draw.random() < 0.25 else 1)))
    usual_s, slow_s = draw.uniform(0.05, 0.4) * step_s / batch_size, draw.uniform(1.5, 4.0) * step_s / batch_size
    if kind == "disk":
        step_s = DISK_S * batch_size / draw.uniform(1.5, 4.0)
    usual = Loading(disks.fast, blocked_s=usual_s, rest_s=step_s)
    if kind == "workers":
        usual = Loading(disks.fast, 4, blocked_s=usual_s * 4, rest_s=step_s)
    slow = {
        "samples": Loading(disks.fast, blocked_s=slow_s, rest_s=step_s),
        "CPU": Loading(disks.fast, busy_s=slow_s, rest_s=step_s),
        "workers": Loading(disks.fast, blocked_s=usual_s * 4 + slow_s, rest_s=step_s),
        "disk": Loading(disks.slow, rest_s=step_s),
    }[kind]
    return Job(kind, ranks, slow_ranks, batch_size, usual, slow)


def healthy_job(kind: str, draw: random.Random, disks: Disks) -> Job:
    """Draw a job with equal ranks: batches of under half a step, of two to four steps, or a few ten times slower."""
    ranks, batch_size, step_s = draw.choice((2, 4, 8)), draw.choice((4, 8, 16)), draw.uniform(0.02, 0.05)
    steps = {"fast": (0.0, 0.4), "all slow": (2.0, 4.0), "scattered": (0.3, 0.5)}[kind]
    usual = Loading(disks.fast, blocked_s=draw.uniform(*steps) * step_s / batch_size, rest_s=step_s)
    return Job(kind, ranks, (), batch_size, usual, usual, 0.02 if kind == "scattered" else 0.0)


def slow_steps_job(kind: str, draw: random.Random, disks: Disks) -> Job:
    """Draw a job in which the slow steps take 1.3 to 3 times as long, in the forward pass or after the optimizer."""
    ranks, batch_size = draw.choice((2, 4, 8)), draw.choice((4, 8, 16))
    forward_s, rest_s = draw.uniform(0.01, 0.03), draw.uniform(0.01, 0.03)
    slow_ranks = tuple(sorted(draw.sample(range(ranks), ranks // 2 if draw.random() < 0.25 else 1)))
    blocked_s = draw.uniform(0.05, 0.4) * (forward_s + rest_s) / batch_size
    usual = Loading(disks.fast, blocked_s=blocked_s, forward_s=forward_s, rest_s=rest_s)
    added_s = draw.uniform(0.3, 2.0) * (forward_s + rest_s)
    slow = (
        replace(usual, forward_s=forward_s + added_s) if kind == "forward" else replace(usual, rest_s=rest_s + added_s)
    )
    return Job(kind, ranks, slow_ranks, batch_size, usual, slow)


def written(folder: Path) -> Path:
    """Write a folder of small files."""
    folder.mkdir()
    for number in range(64):
        (folder / f"{number:03d}.bin").write_bytes(os.urandom(8192))
    return folder


@contextmanager
def mounted(folder: Path, place: Path) -> Iterator[Disks]:
    """Provide the folder, and the same folder as seen through a slow disk."""
    place.mkdir()
    server = subprocess.Popen(
        [sys.executable, Path(__file__).with_name("slow_files.py"), folder, place, str(DISK_S), "0"]
    )
    try:
        while not place.is_mount():
            if server.poll() is not None:
                sys.exit("the slow disk needs libfuse and `uv run --group storage`")
            time.sleep(0.05)
        yield Disks(str(folder), str(place))
    finally:
        helper = next((name for name in ("fusermount3", "fusermount") if shutil.which(name)), None)
        subprocess.run([helper, "-uz", place] if helper else ["umount", "-l", place], check=False)
        server.wait(10)


def verdict_of(job: Job, place: Path) -> dict[str, Any]:
    """The rank that the verdict names, and its headline."""
    out, script = place / "run", place / "train.py"
    shutil.rmtree(out, ignore_errors=True)
    script.write_text(SCRIPT)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(job.ranks)]
    command = [sys.executable, "-m", "loaderbench", "profile", "--out", str(out), "--", *torchrun, str(script)]
    code, said = finished([*command, json.dumps(asdict(job))])
    if code or not (out / "run.json").exists():
        return {"rank": "failed", "said": said[-500:]}
    verdict = json.loads((out / "run.json").read_text())["verdict"]
    return {"rank": verdict["rank"], "said": f"{verdict['bound']}: {verdict['headline']}"}


def finished(command: Sequence[str]) -> tuple[int, str]:
    """Return a command's exit code and stderr; on timeout, end the command with all its children."""
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            _, said = process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGTERM)  # torchrun then ends the ranks
            process.communicate()
            return 1, f"not done after {TIMEOUT_S} s"
    return process.returncode, said


if __name__ == "__main__":
    main()
