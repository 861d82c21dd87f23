"""The other interface: `loaderbench run` on a suite with one value per axis, which the verdict is then about."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from benchmarks.diagnosis.data import photos
from benchmarks.diagnosis.quota import allowed, no_groups
from benchmarks.diagnosis.scenario import HEALTHY, Scenario, Sweep, because_of

SMALL_CROP = "benchmarks.diagnosis.targets:small_crop"
MEASURE = {"rounds": 3, "seconds": 0.7, "timeout_s": 30.0}


def folder(*, workers: int, demand: float = 8_000.0, decoder: str = "pillow", batch: int = 8) -> Sweep:
    """The built-in kind, over real photos."""
    suite = {
        "name": "diagnosis",
        "dataset": {"kind": "image_folder", "decoder": decoder, "transform": SMALL_CROP},
        "loader": {"shuffle": True},
    }
    return _sweep(suite, demand, lambda: str(photos()), num_workers=workers, batch_size=batch)


def target(
    of: str, *, demand: float = 8_000.0, workers: int = 0, batch: int = 8, axes: Any = None, **args: Any
) -> Sweep:
    """A dataset or a loader of the user's own."""
    suite = {
        "name": "diagnosis",
        "dataset": {"kind": "target", "target": f"benchmarks.diagnosis.targets:{of}", "args": args},
    }
    return _sweep(suite, demand, None, num_workers=workers, batch_size=batch, **(axes or {}))


def diagnosed_with_trials(**arguments: Any) -> Sweep:
    """The same with time for trials after the sweep."""
    return replace(target(**arguments), budget="45s")


def given(cores: float, **arguments: Any) -> Sweep:
    """The same within a control group's quota; none of it where `cores` is 0."""
    made = target(**arguments)
    return Sweep(made.suite, made.axes, made.data, (lambda: allowed(cores))) if cores else made


def _sweep(suite: dict[str, Any], demand: float, data: Any, **axes: Any) -> Sweep:
    consumer = {"kind": "emulated", "demand": demand}
    return Sweep({**suite, "consumer": consumer, "measure": MEASURE, "baseline": axes, "sweep": axes}, axes, data)


def _healthy(name: str, why: str, make: Any, **args: Any) -> Scenario:
    return Scenario(f"run_healthy_{name}", why, make, args, HEALTHY, {"loader_is_innocent": {}})


SCENARIOS = (
    Scenario(
        "run_decode_w0",
        "Photos are decoded in the main process, the other core idle.",
        folder,
        {"workers": 0},
        because_of("decode", "workers"),
        {"main_process_loading": {"workers": 2}, "more_workers": {"workers": 2}},
    ),
    Scenario(
        "run_decode_w1",
        "One worker decodes, the other core is idle.",
        folder,
        {"workers": 1},
        because_of("decode", "workers"),
        {"more_workers": {"workers": 2}},
    ),
    Scenario(
        "run_decode_w2",
        "Two decoding workers fill both cores.",
        folder,
        {"workers": 2},
        because_of("decode", "cpu"),
        {"faster_decoder": {"decoder": "torchvision"}},
    ),
    Scenario(
        "run_lookup_w8",
        "Eight workers on two cores, whose tables the cache cannot hold together.",
        target,
        {"of": "opaque", "kind": "Lookup", "workers": 8},
        because_of("sample", "oversubscription"),
        {"fewer_workers": {"workers": 2}, "cheaper_sample": {"ms": 0.2}},
    ),
    Scenario(
        "run_stream_w1",
        "A stream from one worker in pure Python, the other core is idle.",
        target,
        {"of": "stream", "kind": "Python", "workers": 1},
        because_of("sample", "workers"),
        {"more_workers": {"workers": 2}, "cheaper_sample": {"ms": 0.2}},
    ),
    Scenario(
        "run_latency_w2",
        "Each file takes 10 ms.",
        target,
        {"of": "latency", "ms": 10.0, "workers": 2},
        because_of("read", "storage_latency"),
        {"workers_beyond_cores": {"workers": 8}, "cold_cache": {"ms": 0.0}, "pack_small_files": {"ms": 0.0}},
    ),
    Scenario(
        "run_bandwidth_w4",
        "All workers share 30 MB/s; in one method.",
        target,
        {"of": "shared_device", "mb_per_s": 30.0, "workers": 4},
        because_of("read sample", "storage_bandwidth"),
        {"cold_cache": {"mb_per_s": 1e6}, "cheaper_read": {"mb_per_s": 1e6}},
    ),
    Scenario(
        "run_lock_w2",
        "Two workers, one lock around the work.",
        target,
        {"of": "locked", "workers": 2},
        because_of("sample", "lock"),
        {"release_lock": {"held": False}},
    ),
    Scenario(
        "run_straggler_w4",
        "One sample in a hundred sleeps 0.3 s; three of four workers are done and wait.",
        target,
        {"of": "sleepy", "workers": 4, "batch": 4, "demand": 1_000.0},
        because_of("stragglers", "order"),
        {"out_of_order": {"axes": {"in_order": False}}, "slow_samples": {"slow_s": 0.0005}},
    ),
    Scenario(
        "run_tiny_w2",
        "Rows that lie in memory: without workers they come several times faster.",
        target,
        {"of": "tiny", "workers": 2, "batch": 4, "demand": 100_000.0},
        because_of("transport", "cpu lock workers memory"),
        {"no_workers_for_tiny_samples": {"workers": 0}},
    ),
    Scenario(
        "run_memory_w2",
        "40 MB a sample are allocated, touched and freed.",
        target,
        {"of": "allocating", "workers": 2, "batch": 2},
        because_of("sample", "memory"),
        {"page_faults": {"kept": True}},
    ),
    Scenario(
        "run_quota_w2",
        "Two hashing workers are given 0.8 of a core.",
        given,
        {"cores": 0.8, "of": "opaque", "kind": "Hashing", "workers": 2},
        because_of("sample", "quota"),
        {"cpu_quota": {"cores": 0.0}},
        no_groups,
    ),
    _healthy("photos_w2", "Two workers could decode several times what is asked for.", folder, workers=2, demand=200.0),
    _healthy("sample_w0", "1 ms of Python before a step of 80 ms.", target, of="opaque", kind="Python", ms=0.1,
             workers=0, demand=100.0),
    _healthy("stream_w1", "A stream several times as fast as asked for.", target, of="stream", kind="Python", ms=1.0,
             workers=1, demand=200.0),
)  # fmt: skip
