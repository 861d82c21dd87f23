"""Loaders whose workers are threads of one process, with random costs and counts: `loaderbench run` on each."""

from __future__ import annotations

from benchmarks.diagnosis.draws import Draws
from benchmarks.diagnosis.scenario import Expected, Scenario, Sweep, because_of
from benchmarks.diagnosis.sweeps import MEASURE

_DRAW = Draws(20261127)
_CPUS = 2
"""Of the machine that the words are for: as many threads that hold no lock fill them."""


def loaded(of: str, *, loader: str = "threads", count: int, batch: int, **args: float | str) -> Sweep:
    """A dataset of the user's own, with so many threads of `threads`, or workers of `torch`."""
    axes = {"threads" if loader == "threads" else "num_workers": count, "batch_size": batch}
    suite = {
        "name": "diagnosis",
        "dataset": {"kind": "target", "target": f"benchmarks.diagnosis.targets:{of}", "args": args},
        "loader": {"loader": loader},
        "consumer": {"kind": "emulated", "demand": 8_000.0},
        "measure": MEASURE,
        "baseline": axes,
        "sweep": axes,
    }
    return Sweep(suite, axes)


def _turns(number: int) -> Scenario:
    arguments = {"count": _DRAW.randint(2, 4), "batch": _DRAW.choice([4, 8, 16]), "ms": _DRAW.ms(1, 6)}
    why = "Pure Python of {ms} ms a sample, {count} threads, one GIL, batches of {batch}.".format(**arguments)
    fixes = {"process_loader": {"loader": "torch"}, "cheaper_sample": {"ms": 0.2}}
    return _scenario(
        f"threads_gil_drawn_{number}", why, because_of("sample", "lock"), fixes, kind="Python", **arguments
    )


def _free(number: int) -> Scenario:
    """Compiled code that gives up the GIL: threads use all CPUs, as processes would.

    NumPy takes the GIL again after each small transform: two threads then wait for it, too.
    """
    kind, count = _DRAW.choice(["Hashing", "Zipping", "Fourier"]), _DRAW.randint(1, 2)
    arguments = {"count": count, "batch": _DRAW.choice([4, 8, 16]), "ms": _DRAW.ms(2, 8)}
    why = f"{kind} of {{ms}} ms a sample without the GIL, {{count}} threads.".format(**arguments)
    full = "cpu lock" if kind == "Fourier" else "cpu"
    words = because_of("sample", full if count >= _CPUS else "workers")
    fixes = {"cheaper_sample": {"ms": 0.2}, "more_workers": {"count": _CPUS}, "process_loader": {"loader": "torch"}}
    return _scenario(f"threads_free_drawn_{number}", why, words, fixes, kind=kind, **arguments)


def _waiting(number: int) -> Scenario:
    arguments = {"count": _DRAW.randint(1, 4), "batch": _DRAW.choice([4, 8]), "ms": _DRAW.ms(5, 25)}
    why = "{ms} ms a file, however large, {count} threads, batches of {batch}.".format(**arguments)
    fixes = {"workers_beyond_cores": {"count": 16}, "cold_cache": {"ms": 0.0}, "pack_small_files": {"ms": 0.0}}
    words = because_of("read sample", "storage_latency")
    return _scenario(f"threads_latency_drawn_{number}", why, words, fixes, of="latency", **arguments)


def _scenario(
    name: str,
    why: str,
    words: Expected,
    fixes: dict[str, dict[str, float | str]],
    of: str = "opaque",
    **arguments: object,
) -> Scenario:
    return Scenario(name, why, loaded, {"of": of, **arguments}, words, fixes)


SCENARIOS = tuple(draw(number) for draw in (_turns, _free, _waiting) for number in range(4))
