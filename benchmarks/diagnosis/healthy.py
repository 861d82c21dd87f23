"""Loaders that keep up: the step is the limit, in many shapes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.diagnosis import decoding, epochs, opaque, steps, transport_data
from benchmarks.diagnosis.opaque_data import Hashing, Python, Stream
from benchmarks.diagnosis.scenario import HEALTHY, Expected, Loop, Scenario, Step


def beside(loop: Loop, step: Step, seconds: float = 4.0) -> Loop:
    """The same loader, before a step that takes longer."""
    return Loop(loop.loader, step, seconds=seconds, warmup=loop.warmup)


def photos(workers: int, *, ms: float, **more: Any) -> Loop:
    return beside(decoding.folder(workers, **more), steps.device(ms))


def computing(step: Step, **arguments: Any) -> Loop:
    return beside(opaque.computing(**arguments), step)


def uneven(workers: int, *, ms: float) -> Loop:
    return beside(opaque.computing("Hashing", workers, ms=1.0), steps.uneven(ms))


def paused(workers: int, *, ms: float) -> Loop:
    return beside(opaque.computing("Hashing", workers, ms=1.0), steps.with_pauses(ms, 10, 500))


def trained(workers: int) -> Loop:
    return beside(opaque.computing("Python", workers, ms=0.3), steps.training(12))


def small(workers: int, *, ms: float) -> Loop:
    rows = TensorDataset(torch.rand(320, 16), torch.zeros(320))
    return Loop(lambda: DataLoader(rows, 8, shuffle=True, num_workers=workers), steps.device(ms))


def persistent(workers: int, *, ms: float) -> Loop:
    made = epochs.short(workers, batches=30, persistent=True)
    return beside(made, steps.device(ms))


def generated(*, ms: float) -> Loop:
    def batches() -> Iterator[Any]:
        while True:
            yield torch.zeros(8, 16)

    return Loop(batches, steps.device(ms))


def one_by_one(*, ms: float) -> Loop:
    return Loop(lambda: DataLoader(Hashing(2.0), 1, num_workers=1), steps.device(ms))


def streamed(*, ms: float) -> Loop:
    return Loop(lambda: DataLoader(Stream(Python(1.0)), 8, num_workers=2), steps.device(ms), seconds=4.0)


def transferring(workers: int, *, step: Step, images: int = 64) -> Loop:
    """One batch that is ready in the main process, and that the loop copies and copies."""
    dataset = transport_data.Ready(images=images)
    return Loop(lambda: DataLoader(dataset, None, num_workers=workers), step)


FINE: dict[str, dict[str, Any]] = {"loader_is_innocent": {}}
IN_TRANSFER = Expected("transfer", ("transfer", "none", None), ("memory", "cpu", "none", None))


def _healthy(name: str, why: str, make: Any, **args: Any) -> Scenario:
    return Scenario(f"healthy_{name}", why, make, args, HEALTHY, FINE)


SCENARIOS = (
    _healthy("photos_w2", "Two workers decode a batch in a tenth of a step.", photos, workers=2, ms=120),
    _healthy("photos_w1", "One worker decodes a batch in a tenth of a step.", photos, workers=1, ms=150),
    _healthy("photos_spawn_w1", "The same, spawned.", photos, workers=1, ms=150, multiprocessing_context="spawn"),
    _healthy("small_wait_w0", "No workers: 2 ms of Python before a step of 100.", computing, step=steps.device(100),
             kind="Python", workers=0, ms=0.25),
    _healthy("tiny_w0", "Rows from memory before a step of 20 ms, in epochs of 40 batches.", small, workers=0, ms=20),
    _healthy("uneven_w2", "Steps between half and one and a half of 120 ms.", uneven, workers=2, ms=120),
    _healthy("pauses_w2", "One step in ten takes 0.5 s.", paused, workers=2, ms=100),
    _healthy("training_w1", "A real training step on the one core, a light worker on the other.", trained, workers=1),
    _healthy("persistent_w2", "Persistent workers, epochs of 30 batches.", persistent, workers=2, ms=120),
    _healthy("stream_w2", "An iterable dataset in two workers.", streamed, ms=120),
    _healthy("generator", "A generator with ready batches.", generated, ms=10),
    _healthy("one_by_one_w1", "Batches of one sample.", one_by_one, ms=120),
    Scenario(
        "transfer_copies",
        "The loop copies each batch of 39 MB twelve times in a stage that it marks as the transfer.",
        transferring,
        {"workers": 0, "step": steps.copying(12)},
        IN_TRANSFER,
        {"fewer_copies": {"step": steps.copying(1)}, "pin_memory": {"step": steps.copying(1)}},
    ),
    Scenario(
        "transfer_converts_w1",
        "The loop makes each batch float64 and float32 again, part by part, in a stage that it marks as the transfer.",
        transferring,
        {"workers": 1, "images": 8, "step": steps.converting(200)},
        IN_TRANSFER,
        {"fewer_copies": {"step": steps.device(2)}, "uint8_transport": {"step": steps.device(2)}},
    ),
)  # fmt: skip
