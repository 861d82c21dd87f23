"""Workers that ranks share: each rank gets its own batches in order, from its own dataset, and what fails is named."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import distributed, multiprocessing  # noqa: E402
from torch.utils.data import DataLoader, Dataset, DistributedSampler, IterableDataset  # noqa: E402

from loaderbench.loaders import LOADER_BACKENDS  # noqa: E402
from loaderbench.loaders.shared_workers import SharedWorkers  # noqa: E402
from loaderbench.remedies.program import python_program  # noqa: E402

COUNT, BATCH = 48, 4
BROKEN = 1_000


class Numbers(Dataset[Any]):
    """Samples with the rank whose dataset has them, and the process that made them."""

    def __init__(self, rank: int) -> None:
        self.rank = rank

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> Any:
        if index == BROKEN:
            raise LookupError("no such sample")
        return torch.full((3, 8, 8), float(index)), self.rank, os.getpid()


class Together(Numbers):
    """A dataset that makes a batch in one call."""

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [(index, self.rank, len(indices)) for index in indices]


class Stream(IterableDataset[Any]):
    """A dataset without indices."""

    def __iter__(self) -> Iterator[Any]:
        yield from range(COUNT)


def generator(samples: list[Any]) -> Any:
    """A batch that cannot be pickled."""
    return (sample for sample in samples)


def about_worker(samples: list[Any]) -> Any:
    """The worker, as the dataset's code sees it: its rank's dataset, its number, and a random number."""
    info = torch.utils.data.get_worker_info()
    return info.dataset.rank, info.id, info.num_workers, random.random()


def needs_dataset(number: int) -> None:
    info = torch.utils.data.get_worker_info()
    assert (info.id, len(info.dataset)) == (number, COUNT)


def fails(number: int) -> None:
    raise OSError(f"worker {number} has no disk")


def shared(dataset: Dataset[Any], **arguments: Any) -> SharedWorkers:
    return SharedWorkers(DataLoader(dataset, **{"batch_size": BATCH, "num_workers": 1, **arguments}))


def error_of(loader: SharedWorkers) -> str:
    with pytest.raises(RuntimeError) as raised:
        next(iter(loader))
    return str(raised.value)


def of_rank(rank: int, folder: str) -> None:
    torch.manual_seed(0)  # the same in all ranks, as in many scripts
    distributed.init_process_group("gloo", init_method=f"file://{folder}/group", rank=rank, world_size=2)
    numbers = Numbers(rank)
    sampler = DistributedSampler(numbers, shuffle=False)
    loader = shared(numbers, sampler=sampler)
    for _ in loader:
        break  # leaves batches under way
    indices, of_ranks, workers = [], set(), set()
    for images, made_for, made_by in loader:
        indices += images[:, 0, 0, 0].int().tolist()
        of_ranks |= set(made_for.tolist())
        workers |= set(made_by.tolist())
    loader.sampler.set_epoch(3)
    first, second = iter(loader), iter(loader)
    next(first)
    with pytest.raises(RuntimeError, match="an earlier iteration over these workers is still open"):
        next(second)
    first.close()
    seen = shared(numbers, sampler=sampler, collate_fn=about_worker, worker_init_fn=needs_dataset)
    about = [*seen]
    seen.close()
    together = [index for index, _, batch in shared(Together(rank), sampler=sampler) for index in index.tolist()]
    failed = {
        "sample": error_of(shared(numbers, sampler=[BROKEN] * BATCH)),
        "batch": error_of(shared(numbers, collate_fn=generator)),
        "worker_init_fn": error_of(shared(numbers, worker_init_fn=fails)),
    }
    distributed.barrier()
    own = [child.pid for child in active_children()]
    found = {
        "indices": indices, "of_ranks": sorted(of_ranks), "workers": sorted(workers), "together": together,
        "failed": failed, "about": about, "epoch": sampler.epoch, "length": len(loader), "own": own,
    }  # fmt: skip
    distributed.barrier()
    if rank == 0:
        os.kill(min(workers & set(own)), signal.SIGKILL)
    distributed.barrier()
    with pytest.raises(RuntimeError) as raised:
        list(loader)
    Path(folder, str(rank)).write_text(json.dumps(found | {"killed": str(raised.value)}))
    distributed.barrier()
    distributed.destroy_process_group()


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each of two ranks got."""
    folder = tmp_path_factory.mktemp("ranks")
    multiprocessing.spawn(of_rank, (str(folder),), nprocs=2)
    return [json.loads((folder / str(rank)).read_text()) for rank in range(2)]


def test_each_rank_gets_its_own_samples_in_order_even_after_it_broke_off_an_epoch(ranks: list[dict[str, Any]]) -> None:
    assert [found["indices"] for found in ranks] == [list(range(rank, COUNT, 2)) for rank in range(2)]
    assert [found["together"] for found in ranks] == [list(range(rank, COUNT, 2)) for rank in range(2)]
    assert [found["of_ranks"] for found in ranks] == [[0], [1]]


def test_workers_of_all_ranks_load_for_each(ranks: list[dict[str, Any]]) -> None:
    ours, theirs = ranks
    assert ours["workers"] == theirs["workers"]
    assert len(ours["workers"]) == 2
    for found in ranks:
        assert len(set(found["workers"]) & set(found["own"])) == 1


def test_length_and_sampler_are_those_of_the_loader(ranks: list[dict[str, Any]]) -> None:
    assert [(found["length"], found["epoch"]) for found in ranks] == [(COUNT / BATCH / 2, 3)] * 2


def test_worker_info_has_the_dataset_of_the_rank_and_random_numbers_differ(ranks: list[dict[str, Any]]) -> None:
    for rank, found in enumerate(ranks):
        assert {(of_rank, workers) for of_rank, _, workers, _ in found["about"]} == {(rank, 2)}
        assert {number for _, number, _, _ in found["about"]} == {0, 1}
    drawn = [one[3] for found in ranks for one in found["about"]]
    assert len(set(drawn)) == len(drawn) == COUNT / BATCH


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("sample", "LookupError: no such sample"),
        ("batch", "cannot pickle 'generator' object"),
        ("worker_init_fn", "has no disk"),
    ],
)
def test_a_failure_in_a_worker_is_raised_in_each_rank(what: str, text: str, ranks: list[dict[str, Any]]) -> None:
    for found in ranks:
        assert text in found["failed"][what]


def test_a_worker_that_was_killed_is_noticed_by_all_ranks(ranks: list[dict[str, Any]]) -> None:
    assert {found["killed"] for found in ranks} == {"a worker shared by the ranks of this machine exited unexpectedly"}


@pytest.mark.parametrize(
    "make",
    [lambda: shared(Numbers(0), num_workers=0), lambda: shared(Stream()), lambda: shared(Numbers(0), batch_size=None)],
    ids=["no workers", "a stream", "no batches"],
)
def test_loaders_without_workers_or_indices_are_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match="shared workers need num_workers, and a map-style dataset with batches"):
        make()


def test_a_loader_that_iterates_in_its_own_way_is_refused() -> None:
    class Endless(DataLoader[Any]):
        def __iter__(self) -> Any:
            while True:
                yield from super().__iter__()

    with pytest.raises(TypeError, match="shared workers cannot iterate as Endless does"):
        SharedWorkers(Endless(Numbers(0), batch_size=BATCH, num_workers=1))


def test_any_other_iterable_is_refused() -> None:
    with pytest.raises(TypeError, match="share_workers needs a map-style dataset, got list"):
        LOADER_BACKENDS["torch"].build([torch.zeros(4)], {"num_workers": 1, "share_workers": True}, seed=0)


def test_a_loader_of_the_user_shares_its_workers() -> None:
    arguments = {"share_workers": True}
    found = LOADER_BACKENDS["torch"].build(DataLoader(Numbers(0), BATCH, num_workers=1), arguments, seed=0)
    assert isinstance(found.iterable, SharedWorkers)
    assert "share_workers" in found.configured
    found.close()


def test_a_single_process_has_workers_of_its_own() -> None:
    before = set(active_children())
    arguments = {"batch_size": BATCH, "num_workers": 2, "share_workers": True}
    found = LOADER_BACKENDS["torch"].build(Numbers(0), arguments, seed=0)
    batches = iter(found.iterable)
    pids = {pid for _ in range(4) for pid in next(batches)[2].tolist()}
    assert len(pids) == 2
    assert pids <= set(found.worker_pids())
    assert (found.traced_in, found.is_divided, found.samples_per_epoch) == ("nowhere", False, COUNT)
    found.close(batches)
    for child in set(active_children()) - before:
        child.join(60)
    assert not set(active_children()) - before


@pytest.mark.skipif(sys.platform != "linux", reason="torchrun with gloo")
def test_the_pasted_program_shares_workers_under_torchrun(tmp_path: Path) -> None:
    config = {"batch_size": BATCH, "num_workers": 1, "share_workers": True, "ranks": 2}
    code = python_program(config, {}, None).replace(
        "    dataset,\n", "    dataset, sampler=DistributedSampler(dataset),\n"
    )
    head = (
        "from torch.utils.data import DistributedSampler\nimport torch\ntorch.distributed.init_process_group('gloo')\n"
        "dataset = torch.utils.data.TensorDataset(torch.arange(16))\n"
    )
    (tmp_path / "train.py").write_text(
        head + code + "print(sum(len(batch) for batch, in loader), 'samples')\n" + "torch.distributed.barrier()\n"
    )
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("8") == done.stdout.count(" samples") == 2  # lines of both ranks can mix
