"""Causes with random times, sizes and worker counts, drawn from one seed: no rule can be fitted to them."""

from __future__ import annotations

from typing import Any

from torch.utils.data import DataLoader, RandomSampler

from benchmarks.diagnosis.data import uneven_files
from benchmarks.diagnosis.draws import Draws
from benchmarks.diagnosis.main_process import AROUND
from benchmarks.diagnosis.opaque_data import ENDLESS, Python
from benchmarks.diagnosis.scenario import Expected, Loop, Scenario, because_of
from benchmarks.diagnosis.steps import device
from benchmarks.diagnosis.storage_data import Fetched, Sleeping, server
from benchmarks.diagnosis.stragglers import Sleepy

STEP_MS = 2
HIDDEN = because_of("read sample transport", "storage_latency workers lock")

_DRAW, _SOCKETS, _SHAPES = Draws(20261124), Draws(20261125), Draws(20261126)


def reading(workers: int, *, batch: int, **storage: Any) -> Loop:
    """Files of 8 to 1,000 KB from a played device, in random order."""
    dataset = Sleeping(uneven_files(), **storage)
    sampler = RandomSampler(dataset, replacement=True, num_samples=ENDLESS)
    return Loop(lambda: DataLoader(dataset, batch, sampler=sampler, num_workers=workers), device(STEP_MS))


def hesitating(workers: int, *, slow_s: float, batch: int, **more: Any) -> Loop:
    dataset = Sleepy(0.5, slow_s)
    return Loop(lambda: DataLoader(dataset, batch, num_workers=workers, **more), device(4), seconds=5.0)


def converted(
    workers: int, *, ms: float, kind: str, batch: int, shape: str = "a generator", step_ms: float = 1
) -> Loop:
    inner = DataLoader(Python(0.1), batch, num_workers=workers)
    return Loop(lambda: AROUND[shape](inner, ms, kind), device(step_ms))


def polling(workers: int, *, batch: int, latency_s: float) -> Loop:
    """Objects from a server, over sockets with a time limit, as HTTP clients use them."""
    answers = server(latency_s)
    dataset = Fetched(answers.port, timeout_s=10.0)
    return Loop(lambda: DataLoader(dataset, batch, num_workers=workers), device(STEP_MS), within=answers)


def _socket(number: int) -> Scenario:
    """Where workers have a batch almost as often as the step takes one, its way to the step is most of the wait."""
    workers, batch, latency_s = _SOCKETS.randint(1, 6), _SOCKETS.choice([2, 4, 8, 16]), _SOCKETS.ms(5, 60) / 1e3
    arguments = {"workers": workers, "batch": batch, "latency_s": latency_s}
    why = f"{latency_s:.4f} s an object, polled, {workers} workers, batches of {batch}."
    why, words = _unless_hidden(why, arguments)
    return Scenario(f"socket_drawn_{number}", why, polling, arguments, words, {"cold_cache": {"latency_s": 0.0}})


def _bandwidth(number: int) -> Scenario:
    arguments = {"workers": _DRAW.randint(1, 4), "batch": _DRAW.choice([2, 4, 8]), "bytes_per_s": _mb(10, 40)}
    why = "{bytes_per_s:,.0f} bytes/s for each of {workers} readers, in batches of {batch}.".format(**arguments)
    words = because_of("read sample", "storage_bandwidth")
    return Scenario(f"bandwidth_drawn_{number}", why, reading, arguments, words, {"cold_cache": {"bytes_per_s": 0.0}})


def _latency(number: int) -> Scenario:
    arguments = {
        "workers": _DRAW.randint(1, 4),
        "batch": _DRAW.choice([2, 4, 8]),
        "latency_s": _DRAW.ms(4, 30) / 1e3,
    }
    why = "{latency_s:.4f} s a file, however large, {workers} workers, batches of {batch}.".format(**arguments)
    why, words = _unless_hidden(why, arguments)
    return Scenario(f"latency_drawn_{number}", why, reading, arguments, words, {"cold_cache": {"latency_s": 0.0}})


def _order(number: int) -> Scenario:
    arguments = {
        "workers": _DRAW.randint(2, 5),
        "batch": _DRAW.choice([2, 4, 8]),
        "slow_s": _DRAW.ms(200, 600) / 1e3,
    }
    why = "One sample in a hundred takes {slow_s:.2f} s, {workers} workers, batches of {batch}.".format(**arguments)
    fixes = {"out_of_order": {"in_order": False}, "slow_samples": {"slow_s": 0.0005}}
    return Scenario(f"straggler_drawn_{number}", why, hesitating, arguments, because_of("stragglers", "order"), fixes)


def _around(number: int) -> Scenario:
    kind = _DRAW.choice(["python", "fourier", "hashing"])
    arguments = {
        "workers": _DRAW.randint(1, 2),
        "batch": _DRAW.choice([4, 8, 16]),
        "kind": kind,
        "ms": _DRAW.ms(8, 30),
    }
    why = "A generator around the loader works {ms} ms on a batch ({kind}), {workers} workers.".format(**arguments)
    words = because_of("main_process", "lock cpu")
    return Scenario(f"main_drawn_{number}", why, converted, arguments, words, {"move_into_workers": {"ms": 0.0}})


def _shaped(number: int) -> Scenario:
    arguments = {
        "workers": _SHAPES.randint(1, 3),
        "batch": _SHAPES.choice([4, 8, 16]),
        "shape": _SHAPES.choice([*AROUND]),
        "kind": _SHAPES.choice(["python", "fourier", "hashing"]),
        "ms": _SHAPES.ms(6, 30),
        "step_ms": _SHAPES.ms(1, 6),
    }
    why = "{shape} around the loader works {ms} ms on a batch ({kind}), {workers} workers.".format(**arguments)
    words = because_of("main_process", "lock cpu")
    return Scenario(f"around_drawn_{number}", why, converted, arguments, words, {"move_into_workers": {"ms": 0.0}})


def _unless_hidden(why: str, arguments: dict[str, Any]) -> tuple[str, Expected]:
    """What is right, with its reason, for a latency of which workers may hide most."""
    wait_s = arguments["batch"] * arguments["latency_s"] / arguments["workers"]
    if wait_s < 2 * STEP_MS / 1e3:
        return f"{why} Workers hide most of it.", HIDDEN
    return why, because_of("read sample", "storage_latency")


def _mb(least: float, most: float) -> float:
    return round(_DRAW.uniform(least, most), 1) * 1e6


SCENARIOS = (
    *(draw(number) for draw in (_bandwidth, _latency, _order, _around) for number in range(3)),
    *map(_socket, range(8)),
    *map(_shaped, range(8)),
)
