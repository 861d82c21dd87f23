"""Computing, system calls, samplers and batches of many tensors, with costs and worker counts drawn at random."""

from __future__ import annotations

import os
from typing import Any

import torch
from torch.utils.data import DataLoader, default_collate

from benchmarks.diagnosis import opaque_data, work
from benchmarks.diagnosis.draws import Draws
from benchmarks.diagnosis.main_process import SlowSampler
from benchmarks.diagnosis.opaque_data import Endless, Python
from benchmarks.diagnosis.scenario import Loop, Scenario, because_of
from benchmarks.diagnosis.steps import device

_DRAW = Draws(20261126)
COMPUTED_BY = {0: "workers", 1: "workers", 2: "cpu", 3: "cpu oversubscription", 4: "oversubscription cpu"}
"""What limits so many workers that compute on two cores."""


def system_calls(ms: float) -> float:
    return sum(os.stat("/").st_nlink for _ in range(round(ms * 600)))  # noqa: PTH116 - a system call, and little else


class SystemCalls(Endless):
    def __getitem__(self, index: int) -> Any:
        return work.sample(index, system_calls(self.ms))


class Collating:
    """A `collate_fn` that works on each batch."""

    def __init__(self, kind: str, ms: float) -> None:
        self.kind, self.ms = kind, ms

    def __call__(self, samples: list[Any]) -> Any:
        (system_calls if self.kind == "system_calls" else getattr(work, self.kind))(self.ms)
        return default_collate(samples)


class Fields(Endless):
    """Samples with this many small tensors, each sent through its own file descriptor."""

    def __init__(self, fields: int) -> None:
        super().__init__(0.0)
        self.parts = {f"field_{place:03d}": torch.zeros(8) for place in range(fields)}

    def __getitem__(self, index: int) -> Any:
        return self.parts


def computing(kind: str, workers: int, *, ms: float, batch: int) -> Loop:
    dataset = SystemCalls(ms) if kind == "SystemCalls" else getattr(opaque_data, kind)(ms)
    return Loop(lambda: DataLoader(dataset, batch, num_workers=workers), device(0.5))


def collating(kind: str, workers: int, *, ms: float, batch: int) -> Loop:
    collate = Collating(kind, ms)
    return Loop(lambda: DataLoader(Endless(0), batch, num_workers=workers, collate_fn=collate), device(0.5))


def sampling(workers: int, *, ms: float, batch: int) -> Loop:
    sampler = SlowSampler(ms)
    return Loop(lambda: DataLoader(Python(0.2), batch, num_workers=workers, sampler=sampler), device(0.5))


def fields(workers: int, *, fields: int) -> Loop:
    return Loop(lambda: DataLoader(Fields(fields), None, num_workers=workers), device(0))


def _sample(number: int) -> Scenario:
    kind = _DRAW.choice(["Python", "Hashing", "Zipping", "Fourier", "SystemCalls"])
    arguments = {"kind": kind, **_loaded(0, 4), "ms": _DRAW.ms(1, 8)}
    why = "{kind}, {ms} ms a sample, {workers} workers, batches of {batch}.".format(**arguments)
    words = because_of("sample", COMPUTED_BY[arguments["workers"]])
    return Scenario(f"computing_drawn_{number}", why, computing, arguments, words, {"cheaper_sample": {"ms": 0.05}})


def _collate(number: int) -> Scenario:
    kind = _DRAW.choice(["python", "hashing", "zipping", "fourier", "system_calls"])
    arguments = {"kind": kind, **_loaded(0, 4), "ms": _DRAW.ms(8, 40)}
    why = "collate_fn takes {ms} ms ({kind}), {workers} workers, batches of {batch}.".format(**arguments)
    words = because_of("collate", COMPUTED_BY[arguments["workers"]])
    return Scenario(f"collating_drawn_{number}", why, collating, arguments, words, {"cheaper_collate": {"ms": 0.1}})


def _sampler(number: int) -> Scenario:
    arguments = {**_loaded(1, 3), "ms": _DRAW.ms(1, 5)}
    why = "Each index takes {ms} ms of Python in the main process, {workers} workers.".format(**arguments)
    fixes = {"move_into_workers": {"ms": 0.0}, "cheaper_sample": {"ms": 0.0}}
    return Scenario(f"sampler_drawn_{number}", why, sampling, arguments, because_of("main_process", "lock cpu"), fixes)


def _fields(number: int) -> Scenario:
    arguments = {"workers": _DRAW.randint(1, 3), "fields": _DRAW.randint(50, 300)}
    why = "{fields} small tensors a batch, {workers} workers.".format(**arguments)
    words = because_of("transport", "cpu lock workers memory")
    fixes = {"no_workers_for_tiny_samples": {"workers": 0}, "cheaper_collate": {"fields": 1}}
    return Scenario(f"fields_drawn_{number}", why, fields, arguments, words, fixes)


def _loaded(fewest: int, most: int) -> dict[str, int]:
    return {"workers": _DRAW.randint(fewest, most), "batch": _DRAW.choice([4, 8, 16])}


COUNTS = {_sample: 8, _collate: 6, _sampler: 3, _fields: 4}
SCENARIOS = tuple(draw(number) for draw, count in COUNTS.items() for number in range(count))
