"""`loaderbench run` on a function that returns a loader of the user's own, whose epochs end within a trial.

Times, sizes and counts come from one seed. In the drawn ones a batch is made in less time than a step takes, so
training waits for the starts of epochs alone. Next to them are loaders with as short epochs and another cause, or none.
"""

from __future__ import annotations

from typing import Any

from benchmarks.diagnosis.draws import Draws
from benchmarks.diagnosis.scenario import HEALTHY, Scenario, Sweep, because_of
from benchmarks.diagnosis.sweeps import target

_DRAWS = Draws(20261130)


def short_epochs(*, batch: int, step_ms: float, **arguments: Any) -> Sweep:
    """One suite. The step takes `step_ms` on a device of its own."""
    return target("short_epochs", demand=round(batch / step_ms * 1e3, 1), batch=batch, **arguments)


def _restarted(number: int) -> Scenario:
    """Workers that take a time to start, or that are forked for a few batches."""
    opens_s = _DRAWS.choice([0.0, round(_DRAWS.uniform(0.08, 0.3), 3)])
    arguments = {
        "workers": _DRAWS.randint(1, 3),
        "batch": _DRAWS.choice([4, 8, 16]),
        "step_ms": _DRAWS.ms(3, 6),
        "batches": _DRAWS.randint(5, 20) if opens_s else _DRAWS.randint(2, 5),
        "ms": 0.1,
        "opens_s": opens_s,
        "stream": _DRAWS.random() < 0.5,
    }
    why = "Epochs of {batches} batches, each of which starts {workers} workers; each opens files for {opens_s} s."
    words, fixes = because_of("startup", "startup"), {"persistent_workers": {"persistent": True}}
    return Scenario(f"run_epochs_drawn_{number}", why.format(**arguments), short_epochs, arguments, words, fixes)


def _drawn_at_start(number: int) -> Scenario:
    """A sampler that looks at all rows before the first batch."""
    arguments = {
        "workers": _DRAWS.randint(0, 2),
        "batch": 8,
        "step_ms": _DRAWS.ms(3, 6),
        "batches": _DRAWS.randint(8, 20),
        "ms": 0.1,
        "rows": _DRAWS.randint(100_000, 400_000),
        "persistent": _DRAWS.random() < 0.5,
    }
    why = "The sampler looks at {rows} rows before each epoch of {batches} batches, {workers} workers."
    words, fixes = because_of("startup", "startup"), {"chunked_sampler": {"rows": 0}}
    return Scenario(f"run_epochs_sampler_{number}", why.format(**arguments), short_epochs, arguments, words, fixes)


def _slow_samples(number: int) -> Scenario:
    """Short epochs of workers that persist, whose samples are the limit."""
    arguments = {
        "workers": 1,
        "batch": _DRAWS.choice([4, 8]),
        "step_ms": _DRAWS.ms(2, 4),
        "batches": _DRAWS.randint(10, 20),
        "ms": _DRAWS.ms(2, 5),
        "persistent": True,
    }
    why = "{ms} ms of Python a sample in one worker that persists, in epochs of {batches} batches."
    words, fixes = because_of("sample", "workers"), {"more_workers": {"workers": 2}, "cheaper_sample": {"ms": 0.1}}
    return Scenario(f"run_epochs_work_{number}", why.format(**arguments), short_epochs, arguments, words, fixes)


def _healthy(name: str, why: str, **arguments: Any) -> Scenario:
    fixes: dict[str, dict[str, Any]] = {"loader_is_innocent": {}}
    return Scenario(f"run_epochs_healthy_{name}", why, short_epochs, {"batch": 8, **arguments}, HEALTHY, fixes)


SCENARIOS = (
    *map(_restarted, range(8)),
    *map(_drawn_at_start, range(3)),
    *map(_slow_samples, range(3)),
    Scenario(
        "run_epochs_one_batch",
        "Each epoch is one batch, and starts two workers.",
        short_epochs,
        {"workers": 2, "batch": 8, "step_ms": 5, "batches": 1, "ms": 0.1},
        because_of("startup", "startup"),
        {"persistent_workers": {"persistent": True}},
    ),
    _healthy(
        "long", "Epochs of minutes: a start is rare.", workers=2, step_ms=10, batches=10_000, ms=0.1, opens_s=0.1
    ),
    _healthy(
        "w0", "Epochs of ten batches in the main process, which starts none.", workers=0, step_ms=20, batches=10, ms=0.1
    ),
    _healthy(
        "persistent", "Workers that persist have the next batch within a step.", workers=1, step_ms=30, batches=12,
        ms=0.1, persistent=True,
    ),
    _healthy(
        "hidden", "Two steps of 0.2 s are queued while a worker starts.", workers=1, step_ms=200, batches=4, ms=0.1
    ),
)  # fmt: skip
