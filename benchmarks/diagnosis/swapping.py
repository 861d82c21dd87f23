"""Memory that is swapped out, for real: a swap file, and a control group with less memory than the loader needs.

All sizes and counts are drawn. In the other scenarios of this file, memory is in swap too, but nothing waits for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch.utils.data import DataLoader

from benchmarks.diagnosis.data import raw_files, uneven_files
from benchmarks.diagnosis.draws import Draws
from benchmarks.diagnosis.opaque_data import Hashing
from benchmarks.diagnosis.scenario import HEALTHY, Loop, Scenario, because_of
from benchmarks.diagnosis.steps import device
from benchmarks.diagnosis.storage_data import Sleeping
from benchmarks.diagnosis.swap_data import InMemory, Mapped, Objects, limited_to, no_swap, paged_out
from loaderbench.datasets.page_cache import evict

_DRAW = Draws(20261130)
STEP_MS = 1.0
AMPLE_MIB = 4096
OF_A_PROCESS_MIB = 40  # what a worker has besides the dataset
KINDS = ("shared", "copies", "objects")


def swapped(kind: str, workers: int, *, batch: int, mib: int, pages: int, hash_ms: float, limit_mib: int) -> Loop:
    """A dataset in memory, of which a part is in swap whenever it is needed."""

    def loader() -> Any:  # made within the limit
        dataset = Objects(mib, pages) if kind == "objects" else InMemory(mib, pages, kind, hash_ms)
        return DataLoader(dataset, batch, num_workers=workers)

    return Loop(loader, device(STEP_MS), seconds=4.0, within=lambda: limited_to(limit_mib))


@contextmanager
def old_pages(limit_mib: int, mib: int) -> Iterator[None]:
    """Memory that this process wrote once and that is in swap now."""
    with limited_to(limit_mib):
        held = paged_out(mib)
        yield
        held.close()


def unread(workers: int, *, batch: int, ms: float, step_ms: float, mib: int, sleeps: bool) -> Loop:
    """Old pages are in swap, and the loader reads none of them."""
    dataset = Sleeping(uneven_files(), latency_s=ms / 1e3) if sleeps else Hashing(ms)
    return Loop(
        lambda: DataLoader(dataset, batch, num_workers=workers),
        device(step_ms),
        within=lambda: old_pages(AMPLE_MIB, mib),
    )


def mapped(workers: int, *, batch: int, pages: int, limit_mib: int, mib: int) -> Loop:
    """A mapped file that is larger than memory: its pages come from the file, while older ones are in swap."""
    path = Path(raw_files(count=1, size=1 << 30)[0])
    evict([str(path)])
    dataset = Mapped(path, pages)
    return Loop(
        lambda: DataLoader(dataset, batch, num_workers=workers),
        device(STEP_MS),
        within=lambda: old_pages(limit_mib, mib),
    )


def _needed_mib(kind: str, workers: int, mib: int) -> int:
    """Memory in which nothing would be swapped out."""
    copies = 1 if kind == "shared" else workers + 1
    return copies * mib + (workers + 1) * OF_A_PROCESS_MIB


def _swapped(number: int) -> Scenario:
    kind, workers = KINDS[number % len(KINDS)], _DRAW.randint(0, 3)
    workers = max(workers, 2) if kind == "copies" else workers
    arguments: dict[str, Any] = {
        "kind": kind,
        "workers": workers,
        "batch": _DRAW.choice([8, 16]),
        "mib": _DRAW.randint(500, 900) // (workers + 1 if kind == "copies" else 1),
        "pages": _DRAW.randint(80, 250),
        "hash_ms": _DRAW.choice([0.01, 0.01, 0.2]),
    }
    needed = _needed_mib(kind, workers, arguments["mib"])
    arguments["limit_mib"] = int(needed * _DRAW.uniform(0.35, 0.65))
    why = "{kind}: {mib} MiB in memory, {workers} workers, batches of {batch}, a limit of {limit_mib} MiB.".format(
        **arguments
    )
    ample = {"limit_mib": 2 * needed}
    fixes = {"mapped_dataset": ample, "copy_on_read": ample, "fewer_workers": {"workers": workers // 2}}
    return Scenario(f"swap_drawn_{number}", why, swapped, arguments, because_of("sample", "memory"), fixes, no_swap)


def _unread(number: int) -> Scenario:
    sleeps, is_healthy = _DRAW.random() < 0.5, _DRAW.random() < 0.4
    arguments: dict[str, Any] = {
        "workers": 1,
        "batch": _DRAW.choice([2, 4, 8]),
        "ms": _DRAW.ms(2, 6),
        "step_ms": 120.0 if is_healthy else STEP_MS,
        "mib": _DRAW.randint(200, 800),
        "sleeps": sleeps,
    }
    limits = because_of("read sample", "storage_latency") if sleeps else because_of("sample", "workers")
    words = HEALTHY if is_healthy else limits
    why = "{mib} MiB are in swap that nobody reads; {ms} ms a sample, step of {step_ms} ms.".format(**arguments)
    fixes: dict[str, dict[str, Any]] = {"loader_is_innocent": {}} if is_healthy else {}
    return Scenario(f"swap_unread_{number}", why, unread, arguments, words, fixes, no_swap)


def _mapped(number: int) -> Scenario:
    arguments: dict[str, Any] = {
        "workers": _DRAW.randint(1, 3),
        "batch": _DRAW.choice([4, 8, 16]),
        "pages": _DRAW.randint(40, 200),
        "limit_mib": _DRAW.randint(250, 400),
        "mib": _DRAW.randint(50, 150),
    }
    why = "A file of 1 GiB, mapped by {workers} workers, with {limit_mib} MiB of memory.".format(**arguments)
    words = because_of("read sample", "storage_latency storage_bandwidth")
    return Scenario(f"swap_mapped_{number}", why, mapped, arguments, words, {}, no_swap)


SCENARIOS = (*map(_swapped, range(9)), *map(_unread, range(4)), *map(_mapped, range(3)))
