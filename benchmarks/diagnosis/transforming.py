"""Expensive transforms: too few workers, saturated CPUs, and libraries that start threads in each worker."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.data import DataLoader, RandomSampler
from torchvision import transforms
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2

from benchmarks.diagnosis.data import presized_photos
from benchmarks.diagnosis.opaque_data import ENDLESS
from benchmarks.diagnosis.scenario import Loop, Scenario, because_of
from benchmarks.diagnosis.steps import device

FLOAT_FIRST = v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Resize(768), v2.CenterCrop(64)])
UINT8_FIRST = v2.Compose([v2.ToImage(), v2.Resize(768), v2.CenterCrop(64), v2.ToDtype(torch.float32, scale=True)])
RECIPES: dict[str, Any] = {
    "v1_blur": transforms.Compose([transforms.CenterCrop(128), transforms.ToTensor(), transforms.GaussianBlur(11)]),
    "v1_resize": transforms.Compose([transforms.Resize(900), transforms.CenterCrop(64), transforms.ToTensor()]),
    "v2_float_first": FLOAT_FIRST,
    "v2_uint8_first": UINT8_FIRST,
    "v2_blur": v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.GaussianBlur(9), v2.CenterCrop(64)]),
    "light": transforms.Compose([transforms.CenterCrop(64), transforms.ToTensor()]),
}


def one_thread(_worker: int) -> None:
    torch.set_num_threads(1)


def two_threads(_worker: int) -> None:
    torch.set_num_threads(2)


def eight_threads(_worker: int) -> None:
    torch.set_num_threads(8)


THREADS = {1: one_thread, 2: two_threads, 8: eight_threads}


def folder(recipe: str, workers: int, *, threads: int = 1, batch: int = 8) -> Loop:
    """Small photos: decoding them costs little compared to the transforms."""
    dataset = ImageFolder(str(presized_photos()), RECIPES[recipe])
    sampler = RandomSampler(dataset, replacement=True, num_samples=ENDLESS)
    init = THREADS[threads] if workers else None
    return Loop(
        lambda: DataLoader(dataset, batch, sampler=sampler, num_workers=workers, worker_init_fn=init), device(1)
    )


SCENARIOS = (
    Scenario(
        "transform_v1_blur_w0",
        "A wide blur in the main process, the other core idle.",
        folder,
        {"recipe": "v1_blur", "workers": 0},
        because_of("transform", "workers"),
        {"main_process_loading": {"workers": 2}, "more_workers": {"workers": 2}},
    ),
    Scenario(
        "transform_v1_resize_w1",
        "One worker enlarges all the time, the other core is idle.",
        folder,
        {"recipe": "v1_resize", "workers": 1},
        because_of("transform", "workers"),
        {"more_workers": {"workers": 2}},
    ),
    Scenario(
        "transform_v2_float_w2",
        "Two workers enlarge float32 images and fill both cores.",
        folder,
        {"recipe": "v2_float_first", "workers": 2},
        because_of("transform", "cpu"),
        {"transforms_v2_uint8": {"recipe": "v2_uint8_first"}},
    ),
    Scenario(
        "threads_blur_two_each_w2",
        "Two workers with two threads each on two cores: they spin for one another.",
        folder,
        {"recipe": "v2_blur", "workers": 2, "threads": 2},
        because_of("transform", "oversubscription"),
        {"library_threads": {"threads": 1}},
    ),
    Scenario(
        "threads_blur_eight_each_w2",
        "Two workers with eight threads each on two cores.",
        folder,
        {"recipe": "v2_blur", "workers": 2, "threads": 8},
        because_of("transform", "oversubscription"),
        {"library_threads": {"threads": 1}},
    ),
)
