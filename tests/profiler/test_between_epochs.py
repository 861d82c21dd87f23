"""Work between the epochs of a loader, such as a validation, is not counted as part of its steady state."""

from __future__ import annotations

import time

import torch
from loops import trial_of
from torch.utils.data import DataLoader, Dataset

from loaderbench import Profiler


class Waiting(Dataset[torch.Tensor]):
    """Hardly uses a CPU."""

    def __len__(self) -> int:
        return 60

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(0.01)
        return torch.full((2,), index)


def burn(seconds: float) -> None:
    until_s = time.process_time() + seconds
    while time.process_time() < until_s:
        pass


def test_the_cpu_time_of_a_validation_is_not_that_of_the_training_loader() -> None:
    with Profiler("train", trace=True) as prof:
        for _ in range(3):
            for _ in prof.iter(DataLoader(Waiting(), batch_size=4)):
                pass
            burn(1.5)
    trial = trial_of(prof.result)
    assert trial.machine is not None
    assert trial.main_process is not None
    assert trial.cpu_percent_of_allotted is not None
    assert trial.machine.own_cpus < 0.25
    assert trial.main_process.on_cpu_share < 0.25
    assert trial.cpu_percent_of_allotted / 100 * prof.result.record.environment.cpus_allotted < 0.25
