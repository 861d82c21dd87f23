"""What the rungs of the ladder take away, in this process and in a trial's own."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections import namedtuple
from collections.abc import Mapping
from dataclasses import make_dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from loaderbench.consumers.batch_parts import changed
from loaderbench.datasets import page_cache
from loaderbench.datasets.kind import DatasetOfOptions, Samples
from loaderbench.environment import describe_machine
from loaderbench.loaders import Batches
from loaderbench.loaders.torch_loader import build_loader
from loaderbench.records import PlannedTrial, Trial
from loaderbench.records.words import IsolationName
from loaderbench.runner import TrialOrder, TrialRunner, TrialServer, measured_process, probe, replay
from loaderbench.runner.batch_source import QUEUED_STEPS, batch_source, prepare_files
from loaderbench.runner.replay import Replayed, keep
from loaderbench.session.measuring import consumer_for, isolation_order
from loaderbench.suite import Suite
from loaderbench.suite.model import Measure

TARGETS = """
import os, time
import torch
from torch.utils.data import Dataset

class Slow(Dataset):
    def __len__(self): return 64
    def __getitem__(self, index):
        time.sleep(0.02)
        return torch.zeros(3), index

def slow(): return Slow()
def two_batches(): return [torch.zeros(4, 3), torch.zeros(4, 3)]
def no_batch(): return []
def step(batch):
    batch[0] = None  # a list of the loader's own, which is not to be met again
    time.sleep(0.005)
def second_time_fails():
    seen = []
    def step(batch):
        seen.append(batch)
        if len(seen) > 16: raise ValueError('planted in the step')
    return step
"""


class Numbers(Dataset[Any]):
    def __len__(self) -> int:
        return 4_000

    def __getitem__(self, index: int) -> Any:
        return torch.full((3,), float(index)), index


@pytest.mark.parametrize("persistent", [False, True])
def test_keeping_batches_walks_no_loader_and_leaves_no_worker(persistent: bool) -> None:
    loader = DataLoader(Numbers(), batch_size=4, num_workers=2, persistent_workers=persistent)
    kept = keep(build_loader(loader, {}, seed=0))
    assert len(kept) == replay.MOST_BATCHES
    assert kept[1][0][:, 0].tolist() == [4.0, 5.0, 6.0, 7.0]
    assert not kept[0][0].is_shared()
    assert not multiprocessing.active_children()


def test_keeping_ends_with_the_bytes_or_the_seconds_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = [torch.zeros(100) for _ in range(10)]
    monkeypatch.setattr(replay, "MOST_BYTES", 1_000)
    assert len(keep(Batches(batches))) == 2
    monkeypatch.setattr(replay, "MOST_S", -1.0)
    assert len(keep(Batches(batches))) == 1


def test_a_generator_is_closed() -> None:
    closed = threading.Event()

    def batches() -> Any:
        try:
            while True:
                yield torch.zeros(2)
        finally:
            closed.set()

    assert len(keep(Batches(batches()))) == replay.MOST_BATCHES
    assert closed.is_set()


def test_what_a_step_puts_into_a_batch_is_not_met_again() -> None:
    replayed = iter(Replayed([[1, 2], {"a": 1}]))
    next(replayed)[0] = "mine"
    next(replayed)["a"] = "mine"
    assert [next(replayed), next(replayed)] == [[1, 2], {"a": 1}]
    of_fields = iter(Replayed([make_dataclass("Batch", ["a"])(1)]))
    next(of_fields).a = "mine"
    assert next(of_fields).a == 1


def test_tensors_are_found_wherever_a_batch_holds_them() -> None:
    pair = namedtuple("pair", "x y")
    batch = {"a": [torch.ones(1), "text"], "b": (pair(torch.ones(1), 3), torch.ones(1))}
    found = changed(batch, lambda tensor: tensor + 1)
    assert found["a"][0].item() == 2
    assert found["b"][0].x.item() == 2
    assert (found["a"][1], found["b"][0].y) == ("text", 3)


@pytest.fixture(scope="module")
def runner() -> TrialRunner:
    server = TrialServer()
    found = probe(server)
    return TrialRunner(server, describe_machine(server.method, found.gpus, found.not_measured))


def measured(
    runner: TrialRunner,
    place: Path,
    rung: str,
    dataset: dict[str, Any],
    consumer: dict[str, Any],
    samples: tuple[tuple[str, int], ...] = (),
    **config: Any,
) -> Trial:
    (place / "lb_rung_targets.py").write_text(TARGETS)
    suite = Suite.model_validate({"dataset": dataset, "consumer": consumer, "measure": {"seconds": 0.2}})
    planned = PlannedTrial(
        id=f"r1-{rung}", role="isolation", config=config, round=1, isolation=None if rung == "end_to_end" else rung
    )
    kind = consumer_for(planned, suite.consumer.kind)
    order = TrialOrder(planned, suite, place, samples, kind, place / "log")
    return runner.run(order if rung == "end_to_end" else isolation_order(order, None)).trial


SLOW = {"kind": "target", "target": "lb_rung_targets:slow"}
STEP = {"kind": "target", "target": "lb_rung_targets:step"}


@pytest.mark.sleeping
def test_each_isolation_run_measures_only_what_it_keeps(runner: TrialRunner, tmp_path: Path) -> None:
    """A loader of 80 ms and a step of 5 ms, in one process: each alone, and both."""
    rungs: tuple[str, ...] = ("replay_host", "loader_warm", "end_to_end")
    host, warm, whole = (measured(runner, tmp_path, rung, SLOW, STEP, batch_size=4, num_workers=0) for rung in rungs)
    assert {trial.status for trial in (host, warm, whole)} == {"completed"}, [host.failure, warm.failure, whole.failure]
    assert [trial.isolation for trial in (host, warm, whole)] == ["replay_host", "loader_warm", None]
    assert host.samples_per_s > 5 * whole.samples_per_s
    assert warm.samples_per_s == pytest.approx(whole.samples_per_s, rel=0.5)
    assert warm.data_wait_share > 0.9
    assert host.data_wait_share < 0.2
    assert host.epoch_ends == 0
    assert "16 batches cached" in (host.sampled or "")
    assert "no loader ran" in host.not_measured["workers"]
    assert warm.stages


def test_a_loader_of_few_batches_is_replayed_for_as_long_as_any(runner: TrialRunner, tmp_path: Path) -> None:
    dataset = {"kind": "target", "target": "lb_rung_targets:two_batches"}
    found = measured(runner, tmp_path, "replay_host", dataset, {"kind": "target", "target": "lb_rung_targets:slow"})
    assert found.status == "failed"  # `slow` makes a dataset and takes no batch
    found = measured(runner, tmp_path, "replay_host", dataset, {"kind": "none"})
    assert found.batches > 20
    assert "2 batches cached" in (found.sampled or "")


@pytest.mark.parametrize(
    ("dataset", "consumer", "words"),
    [
        ("no_batch", STEP, "returned no batch"),
        ("slow", {"kind": "target", "target": "lb_rung_targets:second_time_fails"}, "planted in the step"),
    ],
)
def test_a_rung_that_fails_is_a_record(
    runner: TrialRunner, tmp_path: Path, dataset: str, consumer: dict[str, Any], words: str
) -> None:
    target = {"kind": "target", "target": f"lb_rung_targets:{dataset}"}
    found = measured(runner, tmp_path, "replay_host", target, consumer)
    assert found.status == "failed"
    assert found.failure
    assert words in found.failure.message


def test_no_file_is_read_twice_where_files_are_cold(runner: TrialRunner, photos: Path, tmp_path: Path) -> None:
    files = tuple((str(path), 0) for path in sorted(photos.rglob("*.jpg")))
    dataset = {"kind": "image_folder", "root": str(photos), "transform": "imagenet_train"}
    found = measured(runner, tmp_path, "loader_cold", dataset, {"kind": "none"}, files, batch_size=2, num_workers=1)
    assert found.status == "completed", found.failure
    assert (found.samples or 0) + 2 * (found.warmup_batches or 0) <= len(files)
    assert found.workers is not None


@pytest.mark.parametrize(("epoch", "taken"), [(64, 2), (95, 2), (32, 1)])
def test_one_pass_ends_where_the_samples_of_an_epoch_were_delivered(tmp_path: Path, epoch: int, taken: int) -> None:
    """However many files hold them, and whether or not the loader says how large its batches are."""
    planned = PlannedTrial(id="t", role="isolation", config={}, round=1, isolation="loader_cold")
    order = TrialOrder(planned, Suite(), tmp_path, (("one shard", 0),), "none", tmp_path / "log")
    endless = (torch.zeros(32, 3) for _ in range(100))
    source, _ = batch_source(order, Batches(endless, samples_per_epoch=epoch), None)
    assert [len(batch) for batch in source] == [32] * taken
    assert list(source) == []


@pytest.mark.parametrize(("device", "least"), [("cuda", QUEUED_STEPS), ("cpu", 2)])
@pytest.mark.parametrize("isolation", ["replay_host", None])
def test_the_warm_up_of_a_gpu_lasts_until_steps_wait_for_each_other(
    device: str, least: int, isolation: IsolationName | None, tmp_path: Path
) -> None:
    planned = PlannedTrial(id="t", role="isolation", config={}, round=1, isolation=isolation)
    suite = Suite.model_validate({"consumer": {"kind": "model", "device": device}})
    order = TrialOrder(planned, suite, tmp_path, (("a", 0),), "model", tmp_path / "log")
    _, rules = batch_source(order, Batches([torch.zeros(32, 3)] * 3), None)
    slow_s = [10.0 * number for number in range(least)]
    assert not rules.warmed_up(slow_s[:-1])
    assert rules.warmed_up(slow_s)


class Files(DatasetOfOptions):
    """Says no more than that its files are known."""

    why_no_files: ClassVar[str] = ""

    def describe(self, sweep: Mapping[str, Any], folder: Path) -> str:
        return "files"

    def make(self, samples: Samples, folder: Path) -> Any:
        return [path for path, _ in samples]


@pytest.mark.parametrize(
    ("isolation", "cache", "done"),
    [("loader_warm", "cold", "warm"), ("loader_cold", "warm", "evict"), (None, "cold", "evict"), (None, "warm", None)],
)
def test_files_of_any_kind_are_put_into_the_page_cache_or_out_of_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, isolation: IsolationName | None, cache: str, done: str | None
) -> None:
    seen: dict[str, list[str]] = {}
    for name in ("warm", "evict"):
        monkeypatch.setattr(page_cache, name, lambda paths, name=name: seen.setdefault(name, list(paths)))
    suite = Suite.model_construct(dataset=Files(), measure=Measure.model_validate({"cache": cache}))
    planned = PlannedTrial(id="t", role="isolation", config={}, round=1, isolation=isolation)
    for samples in ((), (("a", 0), ("b", 1))):
        prepare_files(TrialOrder(planned, suite, tmp_path, samples, "none", tmp_path / "log"))
    assert seen == ({} if done is None else {done: ["a", "b"]})


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="this system cannot evict a file from the page cache")
def test_files_are_cold_or_warm_as_the_rung_says(runner: TrialRunner, photos: Path, tmp_path: Path) -> None:
    files = tuple((str(path), 0) for path in sorted(photos.rglob("*.jpg")))
    dataset = {"kind": "image_folder", "root": str(photos), "transform": "imagenet_train"}
    rungs: tuple[str, ...] = ("loader_warm", "loader_cold", "loader_warm")
    hits = [
        trial.workers.page_cache_hit_share if trial.workers else None
        for rung in rungs
        for trial in [measured(runner, tmp_path, rung, dataset, {"kind": "none"}, files, batch_size=2, num_workers=1)]
    ]
    first, cold, again = hits
    if cold is None or first is None or again is None:
        pytest.skip("this system does not say what a disk had to give")
    if _in_memory(photos):
        pytest.skip("files of a file system in memory are never cold")
    assert cold < 0.5 < first
    assert again > 0.5


def _in_memory(folder: Path) -> bool:
    """Whether the longest mount point above it is one of tmpfs."""
    mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    above = [(len(place), kind) for place, kind in mounts if folder.is_relative_to(place)]
    return max(above)[1] in ("tmpfs", "ramfs")


@pytest.mark.parametrize("compares_rates", [True, False])
def test_a_demand_caps_no_rate_that_is_compared(monkeypatch: pytest.MonkeyPatch, compares_rates: bool) -> None:
    made: list[bool] = []
    monkeypatch.setattr(measured_process, "make_consumer", lambda *_, capped: made.append(capped))
    planned = PlannedTrial(id="p1", role="ab", config={}, round=1, side="after")
    order = TrialOrder(planned, Suite(), Path(), (), "model", Path("log"), compares_rates=compares_rates)
    counters: Any = SimpleNamespace(now_s=lambda: 0.0)
    measured_process._consumer(order, counters)
    assert made == [not compares_rates]
