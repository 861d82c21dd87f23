"""What is `tf_data`'s own: torch's order, the same crops with any threads, batches ahead, shared memory."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
from loader_batches import built, drawn, files_of, images, wait_for  # noqa: E402

from loaderbench.datasets.image_samples import TRANSFORMS  # noqa: E402
from loaderbench.loaders import TorchLoader, tf_data  # noqa: E402
from loaderbench.loaders.tf_data import TfData, TfDataBatches  # noqa: E402

if not TfData().is_installed():  # importing it here would end the process as soon as a test imports Triton
    pytest.skip("TensorFlow is not installed", allow_module_level=True)


@pytest.mark.parametrize("threads", [1, 3])
def test_tf_data_draws_the_samples_of_torch_and_the_same_crops_with_any_threads(threads: int, photos: Path) -> None:
    arguments = {"batch_size": 4, "shuffle": True}
    _, theirs = drawn(TorchLoader(), images(files_of(photos)), 8, **arguments, num_workers=0)
    first, labels = drawn(TfData(), images(files_of(photos), "imagenet_train"), 8, **arguments, threads=2)
    again, _ = drawn(TfData(), images(files_of(photos), "imagenet_train"), 8, **arguments, threads=threads)
    assert labels.tolist() == theirs.tolist()
    assert torch.equal(first, again)


@pytest.mark.parametrize(("threads", "queued", "batch_size"), [(1, 1, 12), (2, 1, 12), (2, 3, 16)])
def test_tf_data_makes_no_more_batches_ahead_than_it_says(
    threads: int, queued: int, batch_size: int, photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tf_data, "NUMBERS", 1)
    taken: list[int] = []

    class Counting:
        def __iter__(self) -> Iterator[int]:
            for place in range(10_000):
                taken.append(place)
                yield place % 24

    source = images(files_of(photos))
    made = TfDataBatches(tf_data.image_files(source, "", TRANSFORMS), Counting(), batch_size, threads, queued, seed=0)
    ahead = TfData().prefetch({"threads": threads, "queued": queued, "batch_size": batch_size}).batches or 0
    try:
        next(iter(made))
        wait_for(lambda: len(taken) >= batch_size * (1 + queued))
        time.sleep(1)
        assert len(taken) <= batch_size * (1 + ahead)
    finally:
        made.end()


def test_tf_data_and_torch_share_the_memory_of_a_batch(photos: Path) -> None:
    with built(TfData(), images(files_of(photos)), batch_size=4) as found:
        (kept, labels), (other, _) = islice(found.iterable, 2)
    copy = kept.clone()
    kept.mul_(2)
    assert torch.equal(kept, copy * 2)
    assert kept.data_ptr() != other.data_ptr()
    assert labels.tolist() == [0, 1, 2, 3]
