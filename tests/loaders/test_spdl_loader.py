"""What is SPDL's own; `test_threads.py` holds for `spdl`, too."""

from __future__ import annotations

import threading
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("spdl.pipeline")
torch = pytest.importorskip("torch")

from loaderbench.loaders.spdl_loader import IN_PIPELINE, Spdl  # noqa: E402

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "loaders" / "spdl.md"


class Halting:
    """Sample 3 raises what no handler of exceptions catches by default."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> Any:
        if index == 3:
            raise SystemExit("over")
        return torch.tensor(index)


def test_what_ends_a_program_reaches_the_consumer_and_no_thread_is_left() -> None:
    before = set(threading.enumerate())
    found = Spdl().build(Halting(), {"batch_size": 2, "threads": 2}, seed=0)
    iterator = iter(found.iterable)
    assert next(iterator).tolist() == [0, 1]
    with pytest.raises(SystemExit, match="over"):
        next(iterator)
    found.close(iterator)
    assert set(threading.enumerate()) <= before


def test_a_loader_that_is_left_in_the_middle_and_begun_again_starts_with_the_first_batch() -> None:
    before = set(threading.enumerate())
    found = Spdl().build(torch.arange(8), {"batch_size": 2, "threads": 2}, seed=0)
    for _ in range(2):
        iterator = iter(found.iterable)
        assert [batch.tolist() for batch in islice(iterator, 2)] == [[0, 1], [2, 3]]
        iterator.close()
    found.close()
    assert set(threading.enumerate()) <= before


def test_batches_under_way_are_more_than_the_sink_holds() -> None:
    found = Spdl().prefetch({"batch_size": 8, "threads": 2, "queued": 3})
    assert (found.workers, found.batch_size, found.batches, found.shares_memory) == (2, 8, 3 + 2 + IN_PIPELINE, False)
