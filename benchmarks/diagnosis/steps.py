"""Consumers of batches: a device simulated by sleeping, and real work on the host."""

from __future__ import annotations

import random
import time
from typing import Any

import torch
from torch import nn

from benchmarks.diagnosis.scenario import Mark, Step


def device(ms: float) -> Step:
    """A step of a device that needs none of the host's CPU."""

    def step(_batch: Any, _mark: Mark) -> None:
        time.sleep(ms / 1e3)

    return step


def uneven(ms: float, seed: int = 0) -> Step:
    """Steps between half and one and a half of the mean, as batches of uneven shapes take."""
    draws = random.Random(seed)

    def step(_batch: Any, _mark: Mark) -> None:
        time.sleep(draws.uniform(0.5, 1.5) * ms / 1e3)

    return step


def with_pauses(ms: float, every: int, pause_ms: float) -> Step:
    """Now and then a long one: a checkpoint, an evaluation, a collection of garbage."""
    taken = 0

    def step(_batch: Any, _mark: Mark) -> None:
        nonlocal taken
        taken += 1
        time.sleep((pause_ms if taken % every == 0 else ms) / 1e3)

    return step


def training(repeats: int) -> Step:
    """Forward, backward and update of a small network on one thread: a step that keeps a core busy."""
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, 16, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    images = torch.rand(8, 3, 64, 64)

    def step(_batch: Any, mark: Mark) -> None:
        with mark("forward and backward"):
            for _ in range(repeats):
                optimizer.zero_grad()
                model(images).mean().backward()
                optimizer.step()

    return step


def copying(copies: int, ms: float = 2.0) -> Step:
    """A batch goes to its device over so many copies on the host, and the device is quick."""

    def step(batch: Any, mark: Mark) -> None:
        with mark("transfer"):
            for _ in range(copies):
                batch[0].clone()
        time.sleep(ms / 1e3)

    return step


def converting(times: int, ms: float = 2.0) -> Step:
    """A batch is made float64 and float32 again, so many times, before it goes to its device."""

    def step(batch: Any, mark: Mark) -> None:
        with mark("transfer"):
            for _ in range(times):
                batch[0].double().float()
        time.sleep(ms / 1e3)

    return step
