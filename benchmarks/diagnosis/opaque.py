"""Compute-heavy datasets with all work in one method: the total cost is visible, not that of its parts."""

from __future__ import annotations

from torch.utils.data import DataLoader

from benchmarks.diagnosis import opaque_data as data
from benchmarks.diagnosis.scenario import Loop, Scenario, because_of
from benchmarks.diagnosis.steps import device


def computing(
    kind: str, workers: int, *, ms: float = 2.0, batch: int = 8, stream: bool = False, context: str | None = None
) -> Loop:
    """A loop that is short beside its samples' work."""
    dataset = getattr(data, kind)(ms)
    source = data.Stream(dataset) if stream else dataset
    method = context if workers else None
    return Loop(lambda: DataLoader(source, batch, num_workers=workers, multiprocessing_context=method), device(2))


SCENARIOS = (
    Scenario(
        "sample_hash_w0",
        "Hashing in the main process, the other core idle.",
        computing,
        {"kind": "Hashing", "workers": 0},
        because_of("sample", "workers"),
        {"main_process_loading": {"workers": 2}, "more_workers": {"workers": 2}, "cheaper_sample": {"ms": 0.2}},
    ),
    Scenario(
        "sample_zip_w1",
        "One worker zips all the time, the other core is idle.",
        computing,
        {"kind": "Zipping", "workers": 1},
        because_of("sample", "workers"),
        {"more_workers": {"workers": 2}, "cheaper_sample": {"ms": 0.2}},
    ),
    Scenario(
        "sample_python_spawn_w1",
        "One spawned worker in pure Python, the other core is idle.",
        computing,
        {"kind": "Python", "workers": 1, "context": "spawn"},
        because_of("sample", "workers"),
        {"more_workers": {"workers": 2}, "cheaper_sample": {"ms": 0.2}},
    ),
    Scenario(
        "sample_stream_w1",
        "An iterable dataset in one worker, the other core is idle.",
        computing,
        {"kind": "Python", "workers": 1, "stream": True},
        because_of("sample", "workers"),
        {"more_workers": {"workers": 2}, "cheaper_sample": {"ms": 0.2}},
    ),
    Scenario(
        "sample_numpy_w2",
        "Two workers with NumPy fill the two cores.",
        computing,
        {"kind": "Fourier", "workers": 2},
        because_of("sample", "cpu"),
        {"cheaper_sample": {"ms": 0.2, "kind": "Python"}},
    ),
    Scenario(
        "sample_hash_forkserver_w2",
        "Two workers from a fork server fill the two cores.",
        computing,
        {"kind": "Hashing", "workers": 2, "context": "forkserver"},
        because_of("sample", "cpu"),
        {"cheaper_sample": {"ms": 0.2}},
    ),
    Scenario(
        "sample_lookup_w8",
        "Eight workers on two cores, each with a table of its own that the cache holds for one or two.",
        computing,
        {"kind": "Lookup", "workers": 8},
        because_of("sample", "oversubscription"),
        {"fewer_workers": {"workers": 2}, "cheaper_sample": {"ms": 0.2}},
    ),
    Scenario(
        "sample_python_w8",
        "Eight workers in pure Python on two cores: six of eight queue. Fewer are as fast here, so `cpu` is true, too.",
        computing,
        {"kind": "Python", "workers": 8},
        because_of("sample", "oversubscription cpu"),
        {"fewer_workers": {"workers": 2}, "cheaper_sample": {"ms": 0.2}},
    ),
)
