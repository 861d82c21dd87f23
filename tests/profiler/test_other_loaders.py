"""Loops that take batches of several loaders: one is recorded, and the waits for the others are known."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from loaderbench import Profiler
from loaderbench.profiler.other_loaders import OtherLoaders


class Batches:
    """Batches that come after a while, with an attribute of their iterator."""

    def __init__(self, count: int, wait_s: float = 0.0) -> None:
        self._count, self._wait_s = count, wait_s

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[list[int]]:
        for _ in range(self._count):
            time.sleep(self._wait_s)
            yield [0, 0]


@pytest.mark.parametrize("recorded_first", [True, False])
def test_a_loop_that_waits_for_another_loader_does_not_keep_up(recorded_first: bool) -> None:
    with Profiler(warmup=2) as prof:
        fast, slow = prof.iter(Batches(30)), prof.iter(Batches(30, 5e-3))
        for _ in zip(fast, slow, strict=True) if recorded_first else zip(slow, fast, strict=True):
            pass
    verdict = prof.result.verdict
    if recorded_first:
        assert verdict.bound == "unknown"
        assert "the loop waits for another loader " in verdict.headline
        assert prof.result.trials[0].data_wait_share is None
    else:
        assert verdict.bound == "input"
        assert prof.result.trials[0].data_wait_share > 0.5


def test_a_validation_within_an_epoch_is_no_step_of_the_training() -> None:
    with Profiler(warmup=2) as prof:
        for number, _ in enumerate(prof.iter(Batches(40, 1e-3))):
            if number % 10 == 9:
                assert len(list(prof.iter(Batches(20, 5e-3)))) == 20
    assert prof.result.verdict.bound == "unknown"


def test_a_short_wait_for_another_loader_changes_nothing() -> None:
    with Profiler(warmup=2) as prof:
        for _ in zip(prof.iter(Batches(20, 5e-3)), prof.iter(Batches(20)), strict=True):
            pass
    assert prof.result.trials[0].data_wait_share > 0.5


def test_waits_before_the_steady_state_do_not_count() -> None:
    waits = OtherLoaders()
    list(waits.timed(iter(Batches(1, 1e-3))))
    assert waits.waited_s >= 1e-3
    waits.forget()
    assert waits.waited_s == 0.0


def test_the_iterator_of_another_loader_is_its_own_but_for_the_time() -> None:
    class Own:
        sent: Any = "kept"

        def __iter__(self) -> Own:
            return self

        def __next__(self) -> int:
            raise KeyError("of the loader")

        def __len__(self) -> int:
            return 7

    timed = OtherLoaders().timed(Own())
    assert (iter(timed) is timed, len(timed), timed.sent) == (True, 7, "kept")  # type: ignore[arg-type,attr-defined]
    with pytest.raises(KeyError, match="of the loader"):
        next(timed)
