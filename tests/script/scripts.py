"""Training scripts as users write them, and the command that profiles them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from command_line import in_process_with_children

from loaderbench.result import Run, load

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]

HEAD = """\
import os, sys, time
import torch
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __init__(self, samples, wait_s=0.003):
        self.samples, self.wait_s = samples, wait_s

    def __len__(self):
        return self.samples

    def __getitem__(self, index):
        time.sleep(self.wait_s)
        return torch.full((8,), float(index)), index % 4


"""

PLAIN = (
    HEAD
    + """\
def main():
    model = torch.nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    train_loader = DataLoader(Slow(480), batch_size=8, num_workers=2)
    val_loader = DataLoader(Slow(80, 0.001), batch_size=8)
    for epoch in range(2):
        for inputs, labels in train_loader:
            loss = torch.nn.functional.cross_entropy(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            for inputs, labels in val_loader:
                model(inputs)
    print("trained", sys.argv[1:])


if __name__ == "__main__":
    main()
"""
)


def profile(place: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Call `loaderbench profile` in a folder."""
    return call(place, "profile", *arguments, **environment)


def call(place: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Call `loaderbench` in a folder: the command in this process, the script in one of its own."""
    return in_process_with_children(*arguments, cwd=place, **environment)


def as_a_user_does(
    place: Path, *arguments: str, environment: Mapping[str, str], **options: object
) -> subprocess.CompletedProcess[str]:
    """Call `loaderbench profile` in a folder, in an interpreter of its own."""
    return subprocess.run(
        [sys.executable, "-m", "loaderbench", "profile", *arguments], cwd=place, env={**os.environ, **environment},
        capture_output=True, text=True, timeout=300, check=False, **options,
    )  # type: ignore[call-overload, no-any-return]  # fmt: skip


def write(place: Path, text: str, name: str = "train.py") -> Path:
    file = place / name
    file.write_text(text)
    return file


def recorded(folder: Path) -> Run:
    return load(folder)
