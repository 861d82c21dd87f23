"""What is `tf_data`'s own: the same order and crops with any threads, batches ahead, shared memory."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from loader_batches import built, drawn, files_of, images, wait_for  # noqa: E402

from loaderbench.datasets.image_samples import TRANSFORMS  # noqa: E402
from loaderbench.loaders import tf_data  # noqa: E402
from loaderbench.loaders.tf_data import TfData, TfDataBatches  # noqa: E402
from loaderbench.loaders.thread_workers import Asked  # noqa: E402

if not TfData().is_installed():  # importing it here would end the process as soon as a test imports Triton
    pytest.skip("TensorFlow is not installed", allow_module_level=True)


@pytest.mark.parametrize("threads", [1, 3])
def test_tf_data_draws_the_same_order_and_crops_with_any_threads(threads: int, photos: Path) -> None:
    source = images(files_of(photos), "imagenet_train")
    first, labels = drawn(TfData(), source, 12, batch_size=4, shuffle=True, threads=2)
    again, same = drawn(TfData(), source, 12, batch_size=4, shuffle=True, threads=threads)
    epochs = labels.view(2, 24).tolist()
    assert [sorted(epoch) for epoch in epochs] == [list(range(24))] * 2
    assert epochs[0] != epochs[1]
    assert labels.tolist() == same.tolist()
    assert torch.equal(first, again)


class Counted(TfDataBatches):
    """Notes each number when the pipeline takes it."""

    def _numbers(self) -> Any:
        self.taken: list[int] = []

        def numbers() -> Iterator[int]:
            for place in range(10_000):
                self.taken.append(place)
                yield place % 24

        tf = self._tf
        return tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec([], tf.int64))


@pytest.mark.parametrize(("threads", "queued", "batch_size"), [(1, 1, 12), (2, 1, 12), (2, 3, 16)])
def test_tf_data_makes_no_more_batches_ahead_than_it_says(
    threads: int, queued: int, batch_size: int, photos: Path
) -> None:
    files = tf_data.image_files(images(files_of(photos)), "", TRANSFORMS)
    made = Counted(files, Asked(batch_size, threads, queued, seed=0, shuffle=False))
    ahead = TfData().prefetch({"threads": threads, "queued": queued, "batch_size": batch_size}).batches or 0
    try:
        next(iter(made))
        wait_for(lambda: len(made.taken) >= batch_size * (1 + queued))
        time.sleep(1)
        assert len(made.taken) <= batch_size * (1 + ahead)
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
