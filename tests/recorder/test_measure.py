"""What is recorded of batches whose cost was planted."""

import time
import weakref
from collections.abc import Iterator
from dataclasses import make_dataclass

import pytest
import torch
from followed_batches import Followed
from sleeping_clock import SleepingClock, sleeping_clock

from loaderbench.consumers import NoConsumer
from loaderbench.consumers.emulated import EmulatedAccelerator
from loaderbench.recorder import NoBatchesError, Rules, measure, recorder_s_per_batch
from loaderbench.recorder.measure import Steps
from loaderbench.recorder.samples import UNBATCHED, count_samples, given_batch_size, image_dtype, sample_counter


class Planted:
    """Batches of `size` that sleep before each, and clock what they slept."""

    def __init__(self, sleep_s: float, size: int = 4, count: int | None = None, first_s: float = 0.0) -> None:
        self.sleep_s, self.size, self.count, self.first_s = sleep_s, size, count, first_s
        self.slept: list[float] = []

    def __iter__(self) -> Iterator[list[int]]:
        number = 0
        while self.count is None or number < self.count:
            began = time.monotonic()
            time.sleep(self.sleep_s + (self.first_s if number == 0 else 0.0))
            self.slept.append(time.monotonic() - began)
            number += 1
            yield [0] * self.size


def test_the_wait_is_what_the_loader_slept() -> None:
    loader = Planted(0.01)
    found = measure(loader, NoConsumer(), Rules(seconds=0.3))
    slept = loader.slept[found.warmup_batches : found.warmup_batches + found.batches]
    assert sum(found.waits_s) == pytest.approx(sum(slept), rel=0.02)
    assert found.data_wait_share == pytest.approx(sum(slept) / found.steady_s, rel=0.02)
    assert found.data_wait_share > 0.9
    assert found.samples == found.batches * 4
    assert found.samples_per_s == pytest.approx(found.samples / found.steady_s)


def test_the_first_batch_is_kept_apart() -> None:
    loader = Planted(0.002, first_s=0.3)
    found = measure(loader, NoConsumer(), Rules(seconds=0.1))
    assert found.time_to_first_batch_s == pytest.approx(loader.slept[0], rel=0.05)
    assert max(found.waits_s) < 0.3


def test_the_loader_ends_with_its_measurement() -> None:
    """Its workers would still make batches while the trial ends what they are made from."""
    said: list[str] = []

    class Noted(Planted):
        def __iter__(self) -> Iterator[list[int]]:
            try:
                yield from super().__iter__()
            finally:
                said.append("the loader ended")

    measure(Noted(0.0005), NoConsumer(), Rules(seconds=0.02), on_closed=lambda *_: said.append("measured"))
    assert said == ["measured", "the loader ended"]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SleepingClock:
    return sleeping_clock(monkeypatch)


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(
    ("sleep_s", "rate", "share"),
    [
        (0.002, 500.0, 0.0),  # the device takes 20 ms a batch and is never without one
        (0.020, 500.0, 0.0),
        (0.025, 400.0, 0.2),  # 5 of 25 ms
        (0.100, 100.0, 0.8),
    ],
)
def test_an_emulated_device_waits_for_what_the_loader_takes_longer_than_it(
    sleep_s: float, rate: float, share: float
) -> None:
    found = measure(Planted(sleep_s, size=10), EmulatedAccelerator(500, time.monotonic), Rules(seconds=1))
    assert found.samples_per_s == pytest.approx(rate)
    assert found.data_wait_share == pytest.approx(share, abs=1e-9)


def test_an_emulated_device_takes_its_time_without_the_host_s_cpu(clock: SleepingClock) -> None:
    device = EmulatedAccelerator(10, time.monotonic)
    began_s = clock.now_s
    moments = []
    for _ in range(4):  # 0.5 s each: the first runs, the second is queued, each further one waits for room
        device.consume(None, 5)
        moments.append(clock.now_s - began_s)
    assert moments == pytest.approx([0.0, 0.0, 0.5, 1.0])


def test_an_epoch_s_end_starts_the_next() -> None:
    assert measure(Planted(0.001, count=7), NoConsumer(), Rules(seconds=0.1)).batches >= 20


def test_a_generator_that_ends_early_keeps_what_was_seen() -> None:
    found = measure(iter(Planted(0.001, count=12)), NoConsumer(), Rules(seconds=5))
    assert found.warmup_batches + found.batches == 12
    assert found.ended_early


@pytest.mark.parametrize("count", [0, 1, 2])
def test_too_few_batches_are_an_error_that_says_how_many(count: int) -> None:
    with pytest.raises(NoBatchesError, match="no batch" if count == 0 else f"after {count} batches"):
        measure(iter(Planted(0.001, count=count)), NoConsumer(), Rules(seconds=5))


def test_what_the_loader_raises_passes_through() -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise ZeroDivisionError("planted")

    with pytest.raises(ZeroDivisionError, match="planted"):
        measure(broken(), NoConsumer(), Rules(seconds=5))


def test_samples_are_counted_in_whatever_a_batch_is() -> None:
    torch = pytest.importorskip("torch")
    images = torch.zeros(6, 3, 2, 2)
    for batch, samples in (
        (images, 6),
        ([images, torch.zeros(6)], 6),
        ({"image": images}, 6),
        ([{"image": images}], 6),
        ({"epoch": 3, "image": images}, 6),
        (make_dataclass("Batch", ["epoch", "image"])(3, images), 6),
        (["a", "b"], 2),
        ([torch.zeros(3, 8, 9)] * 5, 5),
        ((tuple([torch.zeros(3, 8, 9)] * 6), tuple([{"boxes": 1}] * 6)), 6),
        ([(torch.zeros(3, 8, 9), 1)] * 5, 5),
        ([{"image": torch.zeros(3, 8, 9)}] * 5, 5),
        (((images, images), torch.zeros(6)), 6),
        (((images, images), (images, torch.zeros(6))), 6),
        (({"image": images, "epoch": 3}, torch.zeros(6)), 6),
        ((["a", "b", "c", "d", "e", "f"], images), 6),
        (([{"boxes": torch.zeros(9, 4)}] * 6, images), 6),
        ([(torch.zeros(3, 8, 9), 1), None, (torch.zeros(3, 8, 9), 1)], 3),
        ([["a", "b"], ["c"], ["d", "e"]], 3),
        ([1, 2, 3], 3),
        (object(), 1),
        ([], 0),
        ((), 0),
        ({}, 0),
    ):
        assert count_samples(batch) == samples


@pytest.mark.parametrize("empty", [[], (), {}])
def test_an_empty_batch_has_no_samples_unless_it_is_the_item_of_a_dataset(empty: object) -> None:
    torch = pytest.importorskip("torch")
    assert count_samples(empty, batch_size=8) == sample_counter(empty, 8)(empty) == 0
    assert sample_counter([torch.zeros(8, 3)], 8)([torch.zeros(4, 3)]) == 4
    assert count_samples(empty, UNBATCHED) == 1


def test_a_known_batch_size_settles_what_a_batch_s_shape_leaves_open() -> None:
    torch = pytest.importorskip("torch")
    assert count_samples([(torch.zeros(3, 8, 9), torch.zeros(4))] * 2, batch_size=2) == 2
    assert count_samples({"boxes": torch.zeros(40, 4), "images": [1] * 8}, batch_size=8) == 8
    assert count_samples(torch.zeros(5, 3), batch_size=8) == 5  # the last of an epoch
    assert count_samples(object(), batch_size=8) == 8  # a class of the user's own
    points = (torch.zeros(8_000, 3), torch.zeros(8_000))
    assert count_samples(points, batch_size=8) == sample_counter(points, 8)(points) == 8  # points of all samples
    row = {"input_ids": torch.zeros(1, 4_000)}  # packed
    assert sample_counter(row, 8)(row) == 8
    assert sample_counter(torch.zeros(8, 3), 8)(torch.zeros(1, 3)) == 1  # the last of an epoch


def test_a_loader_that_makes_no_batches_hands_out_samples_or_batches() -> None:
    torch = pytest.importorskip("torch")
    from torch.utils.data import BatchSampler, DataLoader, IterableDataset, SequentialSampler

    class Stream(IterableDataset):  # type: ignore[type-arg]
        def __iter__(self) -> object:
            return iter(())

    data = list(range(12))
    by_lists = BatchSampler(SequentialSampler(data), 4, drop_last=False)
    loaders = (
        DataLoader(data, batch_size=None),
        DataLoader(data, batch_size=None, sampler=by_lists),
        DataLoader(Stream(), batch_size=None),
        DataLoader(data, batch_size=4),
        iter(data),
        DataLoader(data, batch_sampler=by_lists),
        DataLoader(data, batch_sampler=[[0, 1], [2]]),
        DataLoader(data, batch_size=16),
    )
    assert [given_batch_size(loader) for loader in loaders] == [UNBATCHED, None, UNBATCHED, 4, None, 4, None, 12]
    image = torch.zeros(3, 8, 9)
    for item, samples in (
        (image, 1),
        ((image, 7), 1),
        ({"label": 7, "image": torch.zeros(8, 9, 3)}, 1),
        (torch.zeros(16), 1),
        ("a text", 1),
        (torch.zeros(16, 3, 8, 9), 16),
        ((torch.zeros(16, 40), torch.zeros(16)), 16),
        (torch.zeros(16, 30, 40), 16),
    ):
        assert count_samples(item, UNBATCHED) == samples
        assert sample_counter(item, UNBATCHED)(item) == samples


class Odd:
    """A loader whose attributes are given."""

    def __init__(self, **attributes: object) -> None:
        vars(self).update(attributes)


@pytest.mark.parametrize(
    ("attributes", "size"),
    [
        ({"batch_size": 8, "batch_sampler": None}, 8),
        ({"batch_size": None, "batch_sampler": None}, None),
        ({"batch_sampler": Odd(batch_size=8)}, 8),
        ({"batch_size": print, "batch_sampler": Odd(batch_size=8), "sampler": range(6)}, 6),
        *(({"batch_size": odd}, None) for odd in (print, "32", (4, 8), True, 0, -4, 4.0)),
    ],
)
def test_a_batch_size_is_a_positive_integer_or_unknown(attributes: dict[str, object], size: int | None) -> None:
    assert given_batch_size(Odd(**attributes)) == size


class Counted(list[int]):
    """Counts how many of its numbers are looked at."""

    looked = 0

    def __iter__(self) -> Iterator[int]:
        for number in super().__iter__():
            self.looked += 1
            yield number


def test_of_long_lists_only_the_first_numbers_are_looked_at() -> None:
    item = {"input_ids": Counted(range(4096)), "labels": Counted(range(4096))}
    assert count_samples(item, UNBATCHED) == 1
    assert sum(found.looked for found in item.values()) < 500
    rows = [Counted(range(2048)) for _ in range(64)]
    assert count_samples(rows, 64) == 64
    assert sum(found.looked for found in rows) < 64 * 200


def test_an_item_that_contains_itself_is_one_sample() -> None:
    item: list[object] = [1]
    item.append(item)
    assert count_samples(item, UNBATCHED) == 1


def test_batches_without_samples_are_an_error() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(NoBatchesError, match="empty batches"):
        measure((torch.zeros(0, 3) for _ in range(50)), NoConsumer(), Rules(seconds=0.1))


@pytest.mark.usefixtures("clock")
def test_epochs_that_end_in_the_steady_state_are_counted() -> None:
    found = measure(Planted(0.01, count=10), NoConsumer(), Rules(seconds=1))
    assert found.epoch_ends == pytest.approx(found.batches / 10, abs=1)
    assert not found.ended_early


def test_the_result_is_told_while_the_loader_lives() -> None:
    order: list[str] = []

    def batches() -> Iterator[list[int]]:
        try:
            while True:
                time.sleep(0.001)
                yield [1]
        finally:
            order.append("loader ended")

    measure(batches(), NoConsumer(), Rules(seconds=0.05), on_closed=lambda *_: order.append("told"))
    assert order[0] == "told"


def test_the_recorder_knows_its_own_cost() -> None:
    assert 0 < recorder_s_per_batch() < 1e-3


class Freeing(NoConsumer):
    """Notes at each batch which of those before are freed by then."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[weakref.ref[object]] = []
        self.freed: list[list[bool]] = []

    def consume(self, batch: object, samples: int) -> None:
        self.freed.append([known() is None for known in self.seen])
        self.seen.append(weakref.ref(batch))


def test_a_batch_is_freed_when_the_next_one_is_there_and_not_within_its_wait() -> None:
    """As by a `for` loop, whose variable keeps it until then."""
    source, consumer = Followed(4), Freeing()
    steps = Steps(source, consumer)
    while steps.take():
        pass
    assert source.freed == [False] * 4, "when the next is asked for"
    assert consumer.freed == [[True] * number for number in range(4)], "when the next is consumed"


def test_the_data_type_of_images_is_found_in_a_batch_of_any_structure() -> None:
    pixels, floats = torch.zeros(8, 32, 32, 3, dtype=torch.uint8), torch.zeros(8, 3, 32, 32)
    assert image_dtype(pixels) == image_dtype({"labels": torch.zeros(8), "images": pixels.numpy()}) == "uint8"
    assert image_dtype([floats, torch.zeros(8)]) == image_dtype([(floats[0], 1), (floats[1], 2)]) == "float32"
    assert image_dtype((torch.zeros(8, 190, 80), torch.zeros(8))) == image_dtype(torch.zeros(8, 3, 4, 4)) == ""
    assert image_dtype([0] * 8) is None
    assert image_dtype(object()) is None
