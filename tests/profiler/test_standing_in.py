"""`Profiler.iter` stands in for the loader: whatever is done to it works as on the loader itself."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from loops import pause, trial_of

from loaderbench import Profiler

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader  # noqa: E402

NUMBERS = list(range(64))


def loader(batch_size: int = 4) -> DataLoader[Any]:
    return DataLoader(NUMBERS, batch_size=batch_size)  # type: ignore[arg-type]


def batches(count: int = 12) -> Iterator[list[int]]:
    for number in range(count):
        yield [number]


def test_next_takes_a_generator_s_batches_and_a_loop_goes_on_with_the_rest() -> None:
    with Profiler(warmup=0) as prof:
        profiled = prof.iter(batches())
        assert [next(profiled), next(profiled)] == [[0], [1]]
        assert [batch for batch in profiled] == [[number] for number in range(2, 12)]  # noqa: C416 - a loop, as a user's
        assert next(profiled, None) is None
    assert trial_of(prof.result).batches == 11  # all but the first


def test_a_loader_that_is_no_iterator_does_not_pass_for_one() -> None:
    with Profiler() as prof, pytest.raises(TypeError, match="not an iterator"):
        next(prof.iter(loader()))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_is_recorded_too(copied: Any) -> None:
    with Profiler(warmup=1) as prof:
        assert len(list(copied(prof.iter(loader())))) == 16
    assert (trial_of(prof.result).batches or 0) > 10


def test_what_is_sent_to_another_process_is_the_loader_alone() -> None:
    with Profiler() as prof:
        assert type(pickle.loads(pickle.dumps(prof.iter(loader())))) is DataLoader


def test_loaders_of_two_batch_sizes_are_two() -> None:
    with Profiler(warmup=0) as prof:
        for size in (2, 8, 2, 8):
            list(prof.iter(loader(size)))
    trial = trial_of(prof.result)
    assert trial.config["batch_size"] == 2
    assert trial.samples == 2 * (trial.batches or 0)


def test_the_result_is_there_while_the_loop_runs() -> None:
    seen = []
    with Profiler(warmup=2) as prof:
        for number, _ in enumerate(prof.iter(loader())):
            pause(0.001)
            if number in (5, 10):
                seen.append(trial_of(prof.result))
    assert [trial.status for trial in seen] == ["completed", "completed"]
    assert (seen[0].batches or 0) < (seen[1].batches or 0) < (trial_of(prof.result).batches or 0)


def test_a_profiler_that_has_ended_lets_go_of_the_loader_though_its_epoch_is_under_way() -> None:
    one = loader()
    first = Profiler(warmup=1).start()
    epoch = iter(first.iter(one))
    for _ in range(12):
        next(epoch)
    assert (trial_of(first.stop()).batches or 0) > 5
    with Profiler(warmup=1) as second:
        list(second.iter(one))
    assert (trial_of(second.result).batches or 0) > 10
    assert len(next(epoch)) == 4
