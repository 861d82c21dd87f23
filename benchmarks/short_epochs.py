"""What `loaderbench profile` costs in a loop of very short epochs.

    uv run python benchmarks/short_epochs.py [--rounds 6] [--loaders 1]

Prints the mean milliseconds per epoch of four batches, without workers: bare and under `profile`, in turns, each in
processes of its own. `--loaders` loaders take turns within a process, as those of many clients.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

EPOCHS, WARM_UP = 600, 600
SCRIPT = """\
import sys, time
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
many, epochs, warm_up = map(int, sys.argv[1:])
rows = [TensorDataset(torch.randn(64, 32), torch.randint(0, 2, (64,))) for _ in range(many)]
loaders = [DataLoader(one, batch_size=16, shuffle=True) for one in rows]
model = torch.nn.Linear(32, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(warm_up + epochs):
    if epoch == warm_up:
        began_s = time.perf_counter()
    for inputs, labels in loaders[epoch % many]:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
print((time.perf_counter() - began_s) / epochs * 1e3)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--loaders", type=int, default=1)
    asked = parser.parse_args()
    with TemporaryDirectory() as folder:
        script = Path(folder) / "epochs.py"
        script.write_text(SCRIPT, encoding="utf-8")
        ways: dict[str, Callable[[int], list[str]]] = {
            "bare": lambda _: [],
            "profile": lambda number: ["-m", "loaderbench", "profile", "-q", "--out", f"{folder}/run{number}"],
        }
        taken_ms: dict[str, list[float]] = {name: [] for name in ways}
        for number in range(asked.rounds):
            for name, before in ways.items():
                taken_ms[name].append(_epoch_ms([*before(number), str(script), str(asked.loaders)]))
    print("| way | ms per epoch | from, to |\n| --- | --: | --- |")
    for name, found_ms in taken_ms.items():
        print(f"| {name} | {statistics.fmean(found_ms):.2f} | {min(found_ms):.2f}, {max(found_ms):.2f} |")


def _epoch_ms(command: list[str]) -> float:
    done = subprocess.run(
        [sys.executable, *command, str(EPOCHS), str(WARM_UP)], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


if __name__ == "__main__":
    main()
