"""Compare the waits that `Profiler` measures on a GPU with a trace of the GPU's work in the same steps.

    python benchmarks/gpu_waits.py --data DIR [--steps N]

Each loop trains a ResNet-18 on the GPU, while torch.profiler records the GPU's work. In that trace, a step waits while
`next()` runs and the GPU runs no kernel and no copy. The error is the difference of the two means, as a share of a
step. Prints one table (Markdown).
"""

from __future__ import annotations

import argparse
import json
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, repeat, takewhile
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import torchvision
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils.data import DataLoader
from torchvision.transforms import v2

from loaderbench import Profiler

WARMUP = 10
GOAL = 0.03
NEXT = "next batch"
ON_THE_GPU = {"kernel", "gpu_memcpy", "gpu_memset"}
BATCH, SIZE = 64, 224


@dataclass(frozen=True)
class Waits:
    """Means per step, in seconds."""

    ours_s: float
    traced_s: float
    step_s: float

    @property
    def error(self) -> float:
        """The difference, as a share of a step."""
        return (self.ours_s - self.traced_s) / self.step_s


class Training:
    """A training step in mixed precision on the GPU, which copies its batch first."""

    def __init__(self) -> None:
        self.model = torchvision.models.resnet18().cuda()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-4)

    def __call__(self, batch: Any) -> None:
        """Queue the step."""
        images, labels = (part.to("cuda", non_blocking=True) for part in batch)
        with torch.autocast("cuda", torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(self.model(images), labels)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a folder of photos by class")
    parser.add_argument("--steps", type=int, default=40, help="steps that count in each loop")
    arguments = parser.parse_args()
    step = Training()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, batches of {BATCH}\n")
    print("| loop | step, ms | wait by Profiler, ms | wait in the trace, ms | error, share of a step | at most 3% |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, batches in loops(arguments.data).items():
        found = compare(step, batches, arguments.steps)
        times = " | ".join(f"{seconds * 1e3:.2f}" for seconds in (found.step_s, found.ours_s, found.traced_s))
        print(f"| {name} | {times} | {found.error:+.2%} | {'yes' if abs(found.error) <= GOAL else 'NO'} |", flush=True)


def loops(data: Path) -> dict[str, Callable[[], Iterable[Any]]]:
    """Sources of batches, by name."""
    transform = v2.Compose([v2.RandomResizedCrop(SIZE), v2.PILToTensor(), v2.ToDtype(torch.float32, scale=True)])
    photos = torchvision.datasets.ImageFolder(str(data), transform)

    def loader(workers: int, *, pinned: bool) -> Iterable[Any]:
        return epochs(DataLoader(photos, BATCH, shuffle=True, num_workers=workers, pin_memory=pinned, drop_last=True))

    ready = torch.rand(BATCH, 3, SIZE, SIZE), torch.randint(1000, (BATCH,))
    pinned = ready[0].pin_memory(), ready[1].pin_memory()
    return {
        "batches from pageable memory, ready": lambda: repeat(ready),
        "batches from pinned memory, ready": lambda: repeat(pinned),
        "DataLoader with 2 workers": lambda: loader(2, pinned=False),
        "DataLoader with 8 workers, pinned": lambda: loader(8, pinned=True),
        "every 8th batch 0.1 s late": lambda: late(pinned, every=8, by_s=0.1),
        "each batch takes 10 ms": lambda: late(pinned, every=1, by_s=0.01),
    }


def epochs(loader: Iterable[Any]) -> Iterator[Any]:
    while True:
        yield from loader


def late(batch: Any, *, every: int, by_s: float) -> Iterator[Any]:
    number = 0
    while True:
        number += 1
        if number % every == 0:
            time.sleep(by_s)
        yield batch


def compare(step: Training, make: Callable[[], Iterable[Any]], steps: int) -> Waits:
    """Run one loop under both profilers."""
    for batch in islice(make(), 3):
        step(batch)
    torch.cuda.synchronize()
    ours = Profiler(warmup=WARMUP, steps=steps)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as theirs, ours:
        batches = iter(ours.iter(make()))
        for _ in range(WARMUP + steps + 1):
            with record_function(NEXT):
                batch = next(batches)
            step(batch)
            del batch  # otherwise the next `next()` in the trace would include unmapping the workers' memory
        torch.cuda.synchronize()
    trial = ours.result.trials[0]
    if not trial.batches or not trial.steady_s or trial.data_wait_share is None:
        raise SystemExit(f"Profiler recorded no steps: {trial.failure}")
    step_s = trial.steady_s / trial.batches
    traced = traced_waits_s(theirs)[WARMUP : WARMUP + trial.batches]
    return Waits(trial.data_wait_share * step_s, sum(traced) / len(traced), step_s)


def traced_waits_s(found: Any) -> list[float]:
    """Time of each `next()` during which the GPU was idle."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        found.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    busy = joined(spans(event for event in events if event.get("cat") in ON_THE_GPU))
    asked = sorted(spans(one for one in events if one.get("name") == NEXT and one.get("cat") == "user_annotation"))
    return [(ended - began - overlap(busy, began, ended)) / 1e6 for began, ended in asked]


def spans(events: Iterable[dict[str, Any]]) -> list[tuple[float, float]]:
    return [(event["ts"], event["ts"] + event["dur"]) for event in events]


def joined(found: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Merge spans into ordered spans without overlap."""
    joint: list[tuple[float, float]] = []
    for began, ended in sorted(found):
        if joint and began <= joint[-1][1]:
            joint[-1] = joint[-1][0], max(joint[-1][1], ended)
        else:
            joint.append((began, ended))
    return joint


def overlap(busy: Sequence[tuple[float, float]], began: float, ended: float) -> float:
    """Length of a span that is covered by ordered spans without overlap."""
    first = max(0, bisect_right(busy, (began, inf)) - 1)
    inside = takewhile(lambda span: span[0] < ended, busy[first:])
    return sum(max(0.0, min(ended, last) - max(began, first)) for first, last in inside)


if __name__ == "__main__":
    main()
