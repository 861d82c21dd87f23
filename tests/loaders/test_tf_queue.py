"""What is `tf_queue`'s own: its threads end with an exception, at the end of data, and when they are asked to.

`test_tf_data.py` holds for `tf_queue`, too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

torch = pytest.importorskip("torch")

from loaderbench.errors import BadImageError  # noqa: E402
from loaderbench.loaders.image_files import ImageFiles  # noqa: E402
from loaderbench.loaders.tf_images import tensorflow  # noqa: E402
from loaderbench.loaders.tf_queue import TfQueue, TfQueueBatches, in_order  # noqa: E402
from loaderbench.loaders.thread_workers import Asked  # noqa: E402

if not TfQueue().is_installed():  # importing it here would end the process as soon as a test imports Triton
    pytest.skip("TensorFlow is not installed", allow_module_level=True)

LONGEST_S = 30.0  # that a test waits for threads


def samples_of(photos: Path, count: int) -> list[tuple[str, int]]:
    return [(str(path), number) for number, path in enumerate(sorted(photos.rglob("*.jpg"))[:count])]


@contextmanager
def batches_of(samples: list[tuple[str, int]], epochs: int | None = None, **arguments: Any) -> Iterator[TfQueueBatches]:
    """Batches of four, in the order of the files where nothing else is asked for."""
    files = ImageFiles(samples, "imagenet_eval", True)
    given = {"batch_size": 4, "threads": 3, "queued": 2, "seed": 0, "shuffle": False, **arguments}
    made = TfQueueBatches(files, Asked(**given), epochs)
    try:
        yield made
    finally:
        made.end()


def labels_of(made: Any) -> list[list[int]]:
    return [labels.tolist() for _, labels in made]


def wait_for(holds: Callable[[], bool]) -> None:
    until_s = time.monotonic() + LONGEST_S
    while not holds():
        assert time.monotonic() < until_s, "not in time"
        time.sleep(0.005)


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("threads", [1, 3])
def test_an_exception_in_one_thread_ends_all_and_is_raised_with_the_path(
    threads: int, photos: Path, tmp_path: Path
) -> None:
    before = set(threading.enumerate())
    samples, bad = samples_of(photos, 24), tmp_path / "bad.jpg"
    bad.write_bytes(Path(samples[0][0]).read_bytes()[:2000])
    samples[9] = (str(bad), 9)
    with batches_of(samples, threads=threads) as made:
        iterator, taken = iter(made), []
        with pytest.raises(BadImageError, match=f"^{bad}: InvalidArgumentError: ") as raised:
            taken.extend(labels_of(iterator))
        assert set(threading.enumerate()) <= before
        assert made.threads() == []
        assert taken == [[0, 1, 2, 3], [4, 5, 6, 7]][: len(taken)]
        assert raised.value.__cause__ is None
        assert list(iterator) == []


def test_one_of_several_bad_files_is_named(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.jpg").write_bytes(b"no image")
    samples = [(str(tmp_path / "bad.jpg"), 0), (str(tmp_path / "missing.jpg"), 1), *samples_of(photos, 6)]
    with batches_of(samples) as made, pytest.raises(BadImageError, match=f"^{tmp_path}/(bad|missing).jpg: "):
        list(made)


def test_an_exception_that_nobody_asked_for_ends_all_and_close_is_silent(
    photos: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    samples = samples_of(photos, 8)
    samples[6] = (str(tmp_path / "missing.jpg"), 6)
    with batches_of(samples, threads=1) as made:
        assert labels_of(islice(made, 1)) == [[0, 1, 2, 3]]
        wait_for(lambda: made.threads() == [])
    assert capfd.readouterr() == ("", "")


def test_after_an_exception_it_can_be_begun_again(photos: Path, tmp_path: Path) -> None:
    samples, missing = samples_of(photos, 8), tmp_path / "missing.jpg"
    samples[2] = (str(missing), 2)
    with batches_of(samples) as made:
        with pytest.raises(BadImageError, match="NotFoundError"):
            list(made)
        missing.write_bytes(Path(samples[0][0]).read_bytes())
        assert labels_of(islice(made, 2)) == [[0, 1, 2, 3], [4, 5, 6, 7]]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("epochs", [1, 2])
def test_the_end_of_data_is_a_normal_end(threads: int, epochs: int, photos: Path) -> None:
    before = set(threading.enumerate())
    expected = [*range(10)] * epochs
    with batches_of(samples_of(photos, 10), threads=threads, epochs=epochs) as made:
        found = labels_of(made)
        assert found == [expected[first : first + 4] for first in range(0, 10 * epochs, 4)]
        assert set(threading.enumerate()) <= before
        assert made.threads() == []
        assert labels_of(made) == found


def test_shuffled_data_that_end_have_every_sample_once(photos: Path) -> None:
    with batches_of(samples_of(photos, 10), shuffle=True, epochs=1) as made:
        found = labels_of(made)
        assert [len(labels) for labels in found] == [4, 4, 2]
        assert sorted(chain.from_iterable(found)) == list(range(10))


def test_threads_that_wait_at_a_full_queue_are_stopped_and_joined(photos: Path) -> None:
    before = set(threading.enumerate())
    with batches_of(samples_of(photos, 12), queued=1) as made:
        iterator = iter(made)
        next(iterator)
        started = set(threading.enumerate()) - before
        assert len(made.threads()) == 3
        assert len(started) > 3
        made.end()
        assert not any(thread.is_alive() for thread in started)
        assert list(iterator) == []


def test_a_thread_that_decodes_a_large_image_is_waited_for(photos: Path, tmp_path: Path) -> None:
    Image.new("RGB", (9_000, 9_000)).save(tmp_path / "large.jpg")
    with batches_of([*samples_of(photos, 4), (str(tmp_path / "large.jpg"), 4)], threads=1) as made:
        assert labels_of(islice(made, 1)) == [[0, 1, 2, 3]]
        (reader,) = made.threads()
        made.end()
        assert not any(thread.native_id == reader for thread in threading.enumerate())


def test_warnings_of_tensorflow_come_again_once_it_has_begun(photos: Path, caplog: pytest.LogCaptureFixture) -> None:
    with batches_of(samples_of(photos, 4)) as made:
        next(iter(made))
        tensorflow().get_logger().warning("of the user's own pipeline")
    assert [record.message for record in caplog.records] == ["of the user's own pipeline"]


def test_samples_that_overtook_each_other_are_put_in_order() -> None:
    def batch(*numbers: int) -> list[Any]:
        found = np.array(numbers)
        return [found * 10, found]

    came = [batch(1, 0, 2), batch(4, 3, 1), batch(0, 2, 4), batch(3, 0, 1)]
    found = [[part.tolist() for part in parts] for parts in in_order(came, cycle(range(5)), 3)]
    numbers = [[0, 1, 2], [3, 4, 0], [1, 2, 3], [4, 0, 1]]
    assert found == [[[10 * number for number in row], row] for row in numbers]


def test_the_last_batch_is_short_where_the_numbers_end_and_left_out_where_the_batches_end_before() -> None:
    came = [[np.array([1, 0])], [np.array([3, 2])], [np.array([4])]]
    whole, ended = ([parts[0].tolist() for parts in in_order(came, range(count), 3)] for count in (5, 6))
    assert (whole, ended) == ([[0, 1, 2], [3, 4]], [[0, 1, 2]])


def test_samples_that_have_not_come_yet_are_waited_for() -> None:
    def came() -> Iterator[list[Any]]:
        yield [np.array([1, 2])]
        yield [np.array([0, 3])]
        raise KeyError("the next batch")

    found = in_order(came(), cycle(range(4)), 2)
    assert [next(found)[0].tolist(), next(found)[0].tolist()] == [[0, 1], [2, 3]]
    with pytest.raises(KeyError, match="the next batch"):
        next(found)
