"""A loader is what the configuration asks for, over a sampler that never ends."""

import os
from itertools import islice
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset  # noqa: E402

from loaderbench.loaders import LOADER_BACKENDS  # noqa: E402
from loaderbench.loaders.torch_loader import build_loader, check_workers_every  # noqa: E402

DATA = TensorDataset(torch.arange(6))


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Any:
        return iter(range(6))


def values(loader: Any, batches: int) -> list[list[int]]:
    return [batch[0].tolist() for batch in islice(loader, batches)]


def test_epochs_follow_each_other_without_an_end() -> None:
    found = build_loader(DATA, {"batch_size": 4}, seed=0)
    assert values(found.iterable, 3) == [[0, 1, 2, 3], [4, 5, 0, 1], [2, 3, 4, 5]]
    assert found.configured


def test_shuffling_visits_every_sample_once_an_epoch_and_repeats_with_its_seed() -> None:
    first, again, other = (
        values(build_loader(DATA, {"batch_size": 6, "shuffle": True}, seed=seed).iterable, 3) for seed in (1, 1, 2)
    )
    assert all(sorted(batch) == list(range(6)) for batch in first)
    assert first == again != other


@pytest.mark.parametrize("kind", [tuple, list, lambda parts: dict(enumerate(parts))], ids=["tuple", "list", "dict"])
@pytest.mark.parametrize("part", [DATA, DataLoader(DATA)], ids=["dataset", "loader"])
def test_several_loaders_or_datasets_are_refused(kind: Any, part: Any) -> None:
    with pytest.raises(TypeError, match=r"expected one loader or dataset, got a (tuple|list|dict) with a"):
        build_loader(kind([part, part]), {}, seed=0)


def test_a_loader_over_fewer_samples_than_a_batch_has_batches_of_those() -> None:
    """With an endless sampler, batches are full."""
    assert build_loader(DataLoader(DATA, batch_size=64), {}, seed=0).batch_size == 6
    assert build_loader(DATA, {"batch_size": 64}, seed=0).batch_size == 64
    assert build_loader(DataLoader(DATA, batch_size=4), {}, seed=0).batch_size == 4
    assert build_loader(DataLoader(DATA, batch_size=None), {}, seed=0).batch_size is None


def test_what_torch_refuses_without_workers_is_left_out() -> None:
    arguments = {"num_workers": 0, "prefetch_factor": 4, "persistent_workers": True, "timeout": 3}
    assert build_loader(DATA, arguments, seed=0).ahead == 0


def test_workers_read_ahead_by_their_prefetch() -> None:
    found = build_loader(DATA, {"num_workers": 2, "prefetch_factor": 3}, seed=0)
    assert (found.cycle, found.ahead) == (2, 6)


def test_loaders_streams_and_iterables_stay_as_they_are_and_a_stream_is_not_shuffled() -> None:
    loader = DataLoader(DATA, batch_size=3)
    assert build_loader(loader, {}, seed=0).iterable is loader
    assert not build_loader(loader, {"batch_size": 1}, seed=0).configured
    assert build_loader([1, 2], {}, seed=0).iterable == [1, 2]
    stream = build_loader(Stream(), {"batch_size": 2, "shuffle": True}, seed=0)
    assert [batch.tolist() for batch in stream.iterable] == [[0, 1], [2, 3], [4, 5]]


def test_on_a_loader_that_is_made_already_what_needs_workers_is_left_out_and_the_rest_is_set() -> None:
    left_out = {"num_workers": 0, "prefetch_factor": None, "persistent_workers": False, "multiprocessing_context": None}
    assert build_loader(DataLoader(DATA), left_out, seed=0).configured == left_out.keys()
    asked = {"num_workers": 0, "prefetch_factor": 4}
    made = DataLoader(DATA, num_workers=1, timeout=9)
    assert build_loader(made, asked, seed=0).configured == {"num_workers"}
    assert len(list(made)) == len(DATA)
    loader = DataLoader(DATA)
    forked = {"num_workers": 1, "prefetch_factor": 3, "multiprocessing_context": "fork"}
    assert build_loader(loader, forked, seed=0).configured == forked.keys()
    assert loader.multiprocessing_context.get_start_method() == "fork"
    assert len(list(loader)) == len(DATA)


def test_workers_of_a_loader_that_is_made_already_can_be_kept_or_not() -> None:
    asked = {"num_workers": 1, "persistent_workers": True}
    kept = DataLoader(DATA, batch_size=3)
    assert build_loader(kept, asked, seed=0).configured == asked.keys()
    first, second = iter(kept), iter(kept)
    assert first is second
    build_loader(kept, {}, seed=0).close()
    restarted = DataLoader(DATA, batch_size=3, num_workers=1, persistent_workers=True)
    build_loader(restarted, {"persistent_workers": False}, seed=0)
    assert iter(restarted) is not iter(restarted)
    alone = DataLoader(DATA, batch_size=3)
    assert build_loader(alone, {"persistent_workers": True}, seed=0).configured == set()


def test_a_loader_over_a_dataset_without_a_length_has_no_known_epoch() -> None:
    class Unknown(Dataset[int]):
        def __getitem__(self, index: int) -> int:
            return index

    found = build_loader(DataLoader(Unknown(), batch_sampler=[[0, 1], [2]]), {}, seed=0)
    assert found.samples_per_epoch is None


@pytest.mark.parametrize(
    ("source", "arguments", "error"),
    [
        (3, {}, TypeError),
        ("abc", {}, TypeError),
        (TensorDataset(torch.zeros(0)), {}, ValueError),
        (DATA, {"no_such": 1}, TypeError),
    ],
)
def test_what_cannot_be_loaded_is_an_error(source: Any, arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        build_loader(source, arguments, seed=0)


class Quits(Dataset[Any]):
    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> Any:
        os._exit(0)


def test_a_worker_that_exits_with_code_0_is_noticed_at_the_next_check() -> None:
    get = torch.utils.data.dataloader._MultiProcessingDataLoaderIter._try_get_data
    before = get.__defaults__
    try:
        check_workers_every(0.5)
        assert get.__defaults__ == (0.5,)
        with pytest.raises(RuntimeError, match="exited unexpectedly"):
            next(iter(DataLoader(Quits(), num_workers=2)))
    finally:
        get.__defaults__ = before


def test_code_without_workers_has_no_argument_that_torch_refuses_then() -> None:
    arguments = {"batch_size": 4, "num_workers": 0, "prefetch_factor": 2, "persistent_workers": True}
    text = "\n".join(LOADER_BACKENDS["torch"].code(arguments, ()))
    assert "num_workers=0" in text
    assert "prefetch_factor" not in text
    assert "persistent_workers" not in text
    assert "prefetch_factor=2" in "\n".join(LOADER_BACKENDS["torch"].code({**arguments, "num_workers": 1}, ()))


@pytest.mark.parametrize("name", ["collate_fn", "sampler", "worker_init_fn"])
def test_the_name_of_a_function_is_not_its_object(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name} is the name of an object; let the target take it as a parameter"):
        build_loader(DATA, {name: "mydata:function"}, seed=0)


def test_an_unknown_argument_is_named_with_the_nearest_of_a_dataloader() -> None:
    with pytest.raises(TypeError, match=r"DataLoader .*: num_worker; did you mean num_workers"):
        build_loader(DATA, {"batch_size": 4, "num_worker": 2}, seed=0)
