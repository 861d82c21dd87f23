"""Batches that cost more to bring from a worker than to make, and memory that the kernel has to zero."""

from __future__ import annotations

from typing import Any

from PIL import Image
from torch.utils.data import DataLoader, RandomSampler
from torchvision.datasets import ImageFolder

from benchmarks.diagnosis import transport_data as data
from benchmarks.diagnosis.data import large_photos, presized_photos
from benchmarks.diagnosis.decoding import LOADERS, V1
from benchmarks.diagnosis.image_data import keep_freed_memory
from benchmarks.diagnosis.opaque_data import ENDLESS
from benchmarks.diagnosis.scenario import Loop, Scenario, because_of
from benchmarks.diagnosis.steps import device

MOVED = "cpu lock workers memory"  # moving uses the CPU of both sides, one pipe, and memory that is zeroed first


def tiny(workers: int, *, batch: int = 4) -> Loop:
    return Loop(lambda: DataLoader(data.InMemory(), batch, num_workers=workers), device(0))


def ready(workers: int, **arguments: Any) -> Loop:
    dataset = data.Ready(**arguments)
    return Loop(lambda: DataLoader(dataset, None, num_workers=workers), device(1))


def nested(workers: int, *, packed: bool = False) -> Loop:
    return Loop(lambda: DataLoader(data.Nested(packed), None, num_workers=workers), device(0))


def views(workers: int, *, dtype: str = "float32") -> Loop:
    dataset = data.Views(dtype)
    return Loop(lambda: DataLoader(dataset, 64, num_workers=workers), device(1))


def allocating(workers: int, **arguments: Any) -> Loop:
    dataset = data.Allocating(**arguments)
    return Loop(lambda: DataLoader(dataset, 2, num_workers=workers), device(1))


def freeing(workers: int, *, kept: bool = False, loader: str = "pillow", small: bool = False) -> Loop:
    """Pillow asks the kernel for the memory of each photo of 12 megapixels."""
    Image.core.set_blocks_max(64 if kept else 0)
    if kept:
        keep_freed_memory()
    root = presized_photos() if small else large_photos()
    dataset = ImageFolder(str(root), V1, loader=LOADERS[loader])
    sampler = RandomSampler(dataset, replacement=True, num_samples=ENDLESS)
    return Loop(lambda: DataLoader(dataset, 2, sampler=sampler, num_workers=workers), device(1))


SCENARIOS = (
    Scenario(
        "transport_tiny_w2",
        "Rows that lie in memory: without workers they come several times faster.",
        tiny,
        {"workers": 2},
        because_of("transport", MOVED),
        {"no_workers_for_tiny_samples": {"workers": 0}},
    ),
    Scenario(
        "transport_tiny_w1",
        "The same with one worker.",
        tiny,
        {"workers": 1},
        because_of("transport", MOVED),
        {"no_workers_for_tiny_samples": {"workers": 0}},
    ),
    Scenario(
        "transport_tensors_w2",
        "Batches of 19 MB that are ready in the worker: all that happens is that they are moved.",
        ready,
        {"workers": 2},
        because_of("transport", MOVED),
        {"uint8_transport": {"dtype": "uint8"}, "no_workers_for_tiny_samples": {"workers": 0}},
    ),
    Scenario(
        "transport_arrays_w2",
        "The same as NumPy arrays, which are pickled through a pipe.",
        ready,
        {"workers": 2, "array": True},
        because_of("transport", MOVED),
        {"uint8_transport": {"dtype": "uint8", "array": True}, "no_workers_for_tiny_samples": {"workers": 0}},
    ),
    Scenario(
        "transport_fields_w2",
        "A hundred small tensors a batch, each sent through its own file descriptor.",
        nested,
        {"workers": 2},
        because_of("transport", MOVED),
        {"no_workers_for_tiny_samples": {"workers": 0}, "cheaper_collate": {"packed": True}},
    ),
    Scenario(
        "transport_views_w2",
        "Views of float32 images, which collate copies straight into shared memory: either word names that copy.",
        views,
        {"workers": 2},
        because_of("transport collate", MOVED),
        {"uint8_transport": {"dtype": "uint8"}},
    ),
    Scenario(
        "memory_pages_w2",
        "40 MB a sample are allocated, touched and freed: most of the CPU time is the kernel's.",
        allocating,
        {"workers": 2},
        because_of("sample", "memory"),
        {"page_faults": {"kept": True}, "cheaper_sample": {"mb": 2}},
    ),
    Scenario(
        "memory_pages_w0",
        "The same in the main process; the kernel's work is what is to be relieved, and no more workers.",
        allocating,
        {"workers": 0},
        because_of("sample", "memory"),
        {"page_faults": {"kept": True}, "cheaper_sample": {"mb": 2}},
    ),
    Scenario(
        "memory_numpy_w1",
        "The same by NumPy, whose memory the kernel zeroes 2 MB at a time: few faults, long ones.",
        allocating,
        {"workers": 1, "pages": False},
        because_of("sample", "memory"),
        {"page_faults": {"kept": True}, "cheaper_sample": {"mb": 2}},
    ),
    Scenario(
        "memory_large_photos_w2",
        "Photos of 12 megapixels, each in memory of its own: most of the CPU time is the kernel's.",
        freeing,
        {"workers": 2},
        because_of("decode", "memory"),
        {"page_faults": {"kept": True}, "jpeg_draft": {"loader": "draft"}, "presize_offline": {"small": True}},
    ),
)
