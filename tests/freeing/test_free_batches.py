"""Free collating and free transport: the loader hands out batches that it made before."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from counted import BATCH, BATCHES, Counted, batches_with
from torch.utils.data import DataLoader

from loaderbench.freeing import CannotFreeError
from loaderbench.freeing.batches import KeptBatches


def test_free_collating_hands_out_batches_that_were_made_before(photos: Path) -> None:
    made = Counted(photos)
    source = DataLoader(made.dataset, BATCH, num_workers=1, collate_fn=made.collate)
    found = batches_with(source, "collate")
    assert 0 < made.collate.made < BATCHES
    assert made.decode.made == BATCHES * BATCH
    assert {tuple(images.shape) for images, _ in found} == {(BATCH, 3, 8, 8)}


def test_batches_of_a_free_collate_cost_the_same_to_send_each_time(photos: Path) -> None:
    """Sending a tensor that is already in shared memory would cost nothing."""
    made = Counted(photos)
    collate = KeptBatches(made.collate, 1)
    samples = [made.dataset[index] for index in range(BATCH)]
    for _ in range(3):
        images, _labels = collate(samples)
        assert not images.is_shared()
        images.share_memory_()
    assert made.collate.made == 1
    shared = KeptBatches(lambda _: torch.zeros(2).share_memory_(), 1)
    assert shared([1]).data_ptr() == shared([1]).data_ptr()


class Pair(NamedTuple):
    images: torch.Tensor
    labels: torch.Tensor


@dataclass
class Record:
    images: torch.Tensor


class Named(MutableMapping[str, torch.Tensor]):
    """A library's own mapping, of which a plain copy shares the parts."""

    def __init__(self, **parts: torch.Tensor) -> None:
        self.parts = parts

    def __getitem__(self, name: str) -> torch.Tensor:
        return self.parts[name]

    def __setitem__(self, name: str, part: torch.Tensor) -> None:
        self.parts[name] = part

    def __delitem__(self, name: str) -> None:
        del self.parts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)


class Encoding(UserDict[str, torch.Tensor]):
    """As a tokenizer of transformers returns one."""


@pytest.mark.parametrize(
    ("made", "images_of"),
    [
        (lambda: {"images": [torch.zeros(2)]}, lambda batch: batch["images"][0]),
        (lambda: Pair(torch.zeros(2), torch.zeros(1)), lambda batch: batch.images),
        (lambda: Encoding(images=torch.zeros(2)), lambda batch: batch["images"]),
        (lambda: Named(images=torch.zeros(2)), lambda batch: batch["images"]),
        (lambda: Record(torch.zeros(2)), lambda batch: batch.images),
    ],
)
def test_so_do_batches_in_other_containers(made: Callable[[], Any], images_of: Callable[[Any], torch.Tensor]) -> None:
    collate = KeptBatches(lambda _: made(), 1)
    for _ in range(3):
        batch = collate([1])
        assert type(batch) is type(made())
        assert not images_of(batch).is_shared()
        images_of(batch).share_memory_()


def test_free_transport_sends_a_token_and_all_else_still_runs(photos: Path) -> None:
    made = Counted(photos)
    source = DataLoader(made.dataset, BATCH, num_workers=1, collate_fn=made.collate)
    found = batches_with(source, "transport", 5)
    assert made.collate.made >= 5
    assert {images.data_ptr() for images, _ in found[1:]} == {found[1][0].data_ptr()}


def test_without_workers_nothing_is_sent_that_could_be_free(photos: Path) -> None:
    with pytest.raises(CannotFreeError, match="no worker processes: batches are loaded in the main process"):
        batches_with(Counted(photos).dataset, "transport", num_workers=0)


@pytest.mark.skipif(torch.cuda.is_available(), reason="batches can be pinned here")
def test_batches_that_cannot_be_pinned_are_kept_as_they_are(photos: Path) -> None:
    """As torch's own loader does, which ignores `pin_memory` without a GPU."""
    source = DataLoader(Counted(photos).dataset, BATCH, num_workers=1, pin_memory=True)
    assert len(batches_with(source, "transport", 5)) == 5
