"""Samples that one call loads, as of a `Subset`, are read, skipped and divided like others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

from loaderbench import Profiler
from loaderbench.records import Trial

BYTES = 20_000


class Files(Dataset[Any]):
    """Reads a file, and applies a transform to its bytes within the same `with` block."""

    def __init__(self, folder: Path) -> None:
        self.paths = [folder / f"{number}.bin" for number in range(64)]
        for path in self.paths:
            path.write_bytes(b"0" * BYTES)
        self.transform = Light()

    def __len__(self) -> int:
        return 2_048

    def __getitem__(self, index: int) -> Any:
        with self.paths[index % 64].open("rb") as file:
            return self.transform(file.read())


class Light:
    """A transform that takes less time than reading a file."""

    def __call__(self, data: bytes) -> Any:
        return data[0]


def profiled(loader: DataLoader[Any]) -> Trial:
    with Profiler("train", trace=True) as prof:
        for _ in prof.iter(loader):
            pass
    (trial,) = prof.result.trials
    return trial


@pytest.mark.parametrize("workers", [0, 1])
def test_files_read_by_a_subset_are_seen(tmp_path: Path, workers: int) -> None:
    dataset = Subset(Files(tmp_path), range(1_024))
    reads = profiled(DataLoader(dataset, batch_size=16, num_workers=workers)).reads
    assert reads is not None
    assert reads.bytes_per_sample == pytest.approx(BYTES)


def test_short_reads_are_not_taken_from_the_transform_that_follows(tmp_path: Path) -> None:
    trial = profiled(DataLoader(Files(tmp_path), batch_size=16))
    assert trial.stages is not None
    assert trial.stages["read"].wall_s
    assert trial.stages["transform"].wall_s


def test_short_samples_of_a_subset_are_not_all_timed() -> None:
    dataset = Subset(TensorDataset(torch.arange(40_000)), range(40_000))
    trial = profiled(DataLoader(dataset, batch_size=32, num_workers=1))
    assert "every sample" not in trial.not_measured.get("sampled", "")
    assert trial.sampled is not None
