"""Workers blocked in reads: simulated devices with latency or limited bandwidth, and the real disk, uncached."""

from __future__ import annotations

from typing import Any

from torch.utils.data import DataLoader, RandomSampler
from torchvision.datasets import ImageFolder

from benchmarks.diagnosis import storage_data as data
from benchmarks.diagnosis.data import photos, presized_photos, raw_files, uneven_files
from benchmarks.diagnosis.decoding import V1
from benchmarks.diagnosis.opaque_data import ENDLESS
from benchmarks.diagnosis.scenario import Loop, Scenario, because_of
from benchmarks.diagnosis.steps import device


def slow_folder(workers: int, *, ms: float = 0.0, mb_per_s: float = 0.0, inside_file: bool = False) -> Loop:
    """`ImageFolder` over a played device: so long a file, or so many bytes a second for each reader."""
    kind = data.SlowFile if inside_file else data.SlowLoader
    root = photos() if mb_per_s else presized_photos()  # those of many sizes, or those that cost next to nothing
    dataset = ImageFolder(str(root), V1, loader=kind(ms / 1e3, mb_per_s * 1e6))
    sampler = RandomSampler(dataset, replacement=True, num_samples=ENDLESS)
    return Loop(lambda: DataLoader(dataset, 8, sampler=sampler, num_workers=workers), device(2))


def opaque(kind: str, workers: int, **arguments: Any) -> Loop:
    """A dataset that reads in its one method."""
    paths = raw_files() if kind == "Uncached" else uneven_files()
    dataset = getattr(data, kind)(paths, **arguments)
    return Loop(lambda: DataLoader(dataset, 4, num_workers=workers), device(2))


def fetched(workers: int, *, ms: float = 10.0) -> Loop:
    """Objects from a server in a process of its own, which answers late: as many at once as are asked for."""
    server = data.server(ms / 1e3)
    dataset = data.Fetched(server.port)
    return Loop(lambda: DataLoader(dataset, 8, num_workers=workers), device(2), within=server)


HERE = {"ms": 0.0}
AWAY = {"workers_beyond_cores": {"workers": 8}, "cold_cache": HERE, "pack_small_files": HERE, "cheaper_read": HERE}
NEAR = {"cold_cache": {"mb_per_s": 0.0}, "cheaper_read": {"mb_per_s": 0.0}, "workers_beyond_cores": {"workers": 8}}

SCENARIOS = (
    Scenario(
        "latency_folder_w2",
        "Each file takes 10 ms, however small, inside the folder's loader function.",
        slow_folder,
        {"workers": 2, "ms": 10.0},
        because_of("read", "storage_latency"),
        AWAY,
    ),
    Scenario(
        "latency_folder_w0",
        "The same in the main process.",
        slow_folder,
        {"workers": 0, "ms": 6.0},
        because_of("read", "storage_latency"),
        {**AWAY, "main_process_loading": {"workers": 8}, "more_workers": {"workers": 8}},
    ),
    Scenario(
        "latency_file_w2",
        "The first `read` of each file object takes 10 ms, as with a file system in user space.",
        slow_folder,
        {"workers": 2, "ms": 10.0, "inside_file": True},
        because_of("read", "storage_latency"),
        AWAY,
    ),
    Scenario(
        "latency_opaque_w4",
        "Sleeps and reads in one method: `read` is the cause, `sample` all that an outsider may see.",
        opaque,
        {"kind": "Sleeping", "workers": 4, "latency_s": 0.02},
        because_of("read sample", "storage_latency"),
        {
            "workers_beyond_cores": {"workers": 12},
            "cold_cache": {"latency_s": 0.0},
            "pack_small_files": {"latency_s": 0.0},
        },
    ),
    Scenario(
        "latency_network_w2",
        "A real socket to a server that answers after 10 ms; not a file, so `sample` is right, too.",
        fetched,
        {"workers": 2},
        because_of("read sample", "storage_latency"),
        {"workers_beyond_cores": {"workers": 8}, "cold_cache": HERE, "pack_small_files": HERE},
    ),
    Scenario(
        "bandwidth_folder_w2",
        "Each reader gets 8 MB/s: a file's time depends on its bytes.",
        slow_folder,
        {"workers": 2, "mb_per_s": 8.0},
        because_of("read", "storage_bandwidth"),
        NEAR,
    ),
    Scenario(
        "bandwidth_uneven_w2",
        "Files of 8 to 1,000 KB at 20 MB/s for each reader; in one method.",
        opaque,
        {"kind": "Sleeping", "workers": 2, "bytes_per_s": 20e6},
        because_of("read sample", "storage_bandwidth"),
        {
            "cold_cache": {"bytes_per_s": 0.0},
            "cheaper_read": {"bytes_per_s": 0.0},
            "workers_beyond_cores": {"workers": 8},
        },
    ),
    Scenario(
        "bandwidth_shared_w4",
        "All readers share 30 MB/s: more workers get no more.",
        opaque,
        {"kind": "SharedDevice", "workers": 4, "bytes_per_s": 30e6},
        because_of("read sample", "storage_bandwidth"),
        {"cold_cache": {"bytes_per_s": 1e12}, "cheaper_read": {"bytes_per_s": 1e12}},
    ),
    Scenario(
        "disk_uncached_w2",
        "The real disk, by O_DIRECT: 8 MB a sample, past the page cache.",
        opaque,
        {"kind": "Uncached", "workers": 2},
        because_of("read sample", "storage_bandwidth"),
        {"cold_cache": {"cached": True}, "cheaper_read": {"size": 1 << 20}},
    ),
    Scenario(
        "disk_uncached_w1",
        "The same by one worker; two may read twice as fast, which makes the latency of a request right, too.",
        opaque,
        {"kind": "Uncached", "workers": 1},
        because_of("read sample", "storage_bandwidth storage_latency"),
        {"cold_cache": {"cached": True}, "cheaper_read": {"size": 1 << 20}, "more_workers": {"workers": 2}},
    ),
)
