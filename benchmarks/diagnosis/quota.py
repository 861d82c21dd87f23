"""Cores that the workers are not given: a control group's quota, and an affinity mask that is too small."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from torch.utils.data import DataLoader, Subset

from benchmarks.diagnosis import opaque_data
from benchmarks.diagnosis.data import photo_paths
from benchmarks.diagnosis.draws import Draws
from benchmarks.diagnosis.image_data import Photos, pinned
from benchmarks.diagnosis.scenario import Loop, Scenario, because_of
from benchmarks.diagnosis.steps import device

GROUPS = Path("/sys/fs/cgroup/cpu")  # version 1
PERIOD_US = 100_000

_DRAW = Draws(20261129)


@contextmanager
def allowed(cores: float) -> Iterator[None]:
    """Put this process and what it starts in a control group of its own with so many cores; removed afterwards."""
    group = GROUPS / f"loaderbench-diagnosis-{os.getpid()}"
    group.mkdir()
    try:
        (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (group / "cpu.cfs_quota_us").write_text(str(int(cores * PERIOD_US)))
        (group / "cgroup.procs").write_text(str(os.getpid()))
        yield
    finally:
        _remove(group)


def _remove(group: Path) -> None:
    """Move out what is in it still, and wait for what is ending; a process that ends cannot be moved."""
    for _ in range(100):
        for pid in (group / "cgroup.procs").read_text().split():
            with suppress(OSError):
                (GROUPS / "cgroup.procs").write_text(pid)
        try:
            return group.rmdir()
        except OSError:
            time.sleep(0.1)
    return group.rmdir()


def no_groups() -> str | None:
    """Say why no quota can be set here, or nothing."""
    if not (GROUPS / "cpu.cfs_quota_us").exists():
        return f"no control groups of version 1 at {GROUPS}"
    group = GROUPS / f"loaderbench-diagnosis-{os.getpid()}"
    try:
        group.mkdir()
        group.rmdir()
    except OSError as error:
        return f"a control group cannot be made: {error.strerror}"
    return None


def limited(work: str, workers: int, *, cores: float = 0.0, pin: bool = False, ms: float = 2.0) -> Loop:
    dataset: Any = Photos(photo_paths()) if work == "photos" else getattr(opaque_data, work)(ms)
    init = pinned if pin else None
    within = (lambda: allowed(cores)) if cores else nullcontext
    return Loop(lambda: DataLoader(dataset, 8, num_workers=workers, worker_init_fn=init), device(1), within=within)


def pinned_epochs(*, workers: int, ms: float, samples: int, batch: int, pin: bool = True) -> Loop:
    """Epochs of a second or two, with workers that stay."""
    dataset = Subset(opaque_data.Hashing(ms), range(samples))
    arguments = {"num_workers": workers, "persistent_workers": True, "worker_init_fn": pinned if pin else None}
    return Loop(lambda: DataLoader(dataset, batch, **arguments), device(1))


def _drawn(number: int) -> Scenario:
    workers, ms, epoch_s = _DRAW.randint(2, 4), _DRAW.ms(3, 8), _DRAW.uniform(0.8, 2)
    arguments = {"workers": workers, "ms": ms, "samples": int(epoch_s / ms * 1e3), "batch": _DRAW.choice([4, 8])}
    why = f"{workers} workers share one core in epochs of {epoch_s:.1f} s, the other is idle."
    words = because_of("sample", "quota")
    return Scenario(f"quota_drawn_{number}", why, pinned_epochs, arguments, words, {"cpu_quota": {"pin": False}})


SCENARIOS = (
    *map(_drawn, range(5)),
    Scenario(
        "quota_group_photos_w2",
        "Two decoding workers on two cores are given 0.8 of one.",
        limited,
        {"work": "photos", "workers": 2, "cores": 0.8},
        because_of("decode", "quota"),
        {"cpu_quota": {"cores": 0.0}},
        no_groups,
    ),
    Scenario(
        "quota_group_hash_w1",
        "One hashing worker is given 0.5 of a core.",
        limited,
        {"work": "Hashing", "workers": 1, "cores": 0.5},
        because_of("sample", "quota"),
        {"cpu_quota": {"cores": 0.0}},
        no_groups,
    ),
    Scenario(
        "quota_pinned_photos_w2",
        "Two decoding workers share one core by their affinity, the other is idle.",
        limited,
        {"work": "photos", "workers": 2, "pin": True},
        because_of("decode", "quota"),
        {"cpu_quota": {"pin": False}},
    ),
    Scenario(
        "quota_pinned_hash_w4",
        "Four hashing workers share one core by their affinity, the other is idle.",
        limited,
        {"work": "Hashing", "workers": 4, "pin": True},
        because_of("sample", "quota"),
        {"cpu_quota": {"pin": False}},
    ),
)
