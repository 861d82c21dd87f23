"""A loader is what the configuration asks for, over a sampler that never ends."""

from itertools import islice
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader, IterableDataset, TensorDataset  # noqa: E402

from loaderbench.loaders import build_loader  # noqa: E402

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


def test_what_torch_refuses_without_workers_is_left_out() -> None:
    arguments = {"num_workers": 0, "prefetch_factor": 4, "persistent_workers": True, "timeout": 3}
    assert build_loader(DATA, arguments, seed=0).prefetch_batches == 0


def test_workers_read_ahead_by_their_prefetch() -> None:
    found = build_loader(DATA, {"num_workers": 2, "prefetch_factor": 3}, seed=0)
    assert (found.num_workers, found.prefetch_batches) == (2, 6)


def test_loaders_streams_and_iterables_stay_as_they_are() -> None:
    loader = DataLoader(DATA, batch_size=3)
    assert build_loader(loader, {}, seed=0).iterable is loader
    assert not build_loader(loader, {"batch_size": 1}, seed=0).configured
    assert build_loader([1, 2], {}, seed=0).iterable == [1, 2]
    stream = build_loader(Stream(), {"batch_size": 2, "shuffle": True}, seed=0)
    assert [batch.tolist() for batch in stream.iterable] == [[0, 1], [2, 3], [4, 5]]


@pytest.mark.parametrize(
    ("source", "arguments", "error"),
    [(3, {}, TypeError), (TensorDataset(torch.zeros(0)), {}, ValueError), (DATA, {"no_such": 1}, TypeError)],
)
def test_what_cannot_be_loaded_is_an_error(source: Any, arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        build_loader(source, arguments, seed=0)
