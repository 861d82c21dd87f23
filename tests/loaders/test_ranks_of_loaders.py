"""What holds for every loader in the ranks of a process group: each rank loads its own part."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from loader_batches import INSTALLED, built, every_loader, files_of, images, sharing_leftovers, stored  # noqa: E402
from torch import multiprocessing  # noqa: E402

from loaderbench.datasets.image_samples import ImageSamples  # noqa: E402
from loaderbench.formats import FORMATS, written_copy  # noqa: E402
from loaderbench.loaders import LOADER_BACKENDS  # noqa: E402

pytestmark = [pytest.mark.slow, sharing_leftovers]

ODD, EVEN = 23, 24
"""Numbers of images that two ranks share."""

IMAGES = ImageSamples.__module__
"""The fork server of a rank imports it, and torch with it, for the workers of all loaders."""


@dataclass(frozen=True)
class Loaded:
    """What a rank got from a loader over some images."""

    loader: str
    images: int
    shuffle: bool
    labels: list[int]
    is_divided: bool
    samples_per_epoch: int

    def epoch(self, number: int) -> list[int]:
        return self.labels[number * self.samples_per_epoch :][: self.samples_per_epoch]


def of_rank(rank: int, folder: str, sources: dict[tuple[str, int], ImageSamples]) -> None:
    from torch import distributed

    multiprocessing.set_forkserver_preload([IMAGES])
    distributed.init_process_group("gloo", init_method=f"file://{folder}/group", rank=rank, world_size=2)
    loaded: list[Any] = []
    for (name, number), source in sources.items():
        for shuffle in (False, True):
            own: dict[str, Any] = {"batch_size": 1, "shuffle": shuffle}
            if "threads" in LOADER_BACKENDS[name].axes:
                own["threads"] = 1  # two may overtake each other at the end of an epoch
            elif shuffle and number == EVEN:  # a worker that is not forked has no process group
                own |= {"num_workers": 1, "multiprocessing_context": "forkserver"}
            with built(LOADER_BACKENDS[name], source, **own) as found:
                per_epoch = found.samples_per_epoch or 0
                labels = [int(label) for _, label in islice(found.iterable, 2 * per_epoch)]
                loaded.append([name, number, shuffle, labels, found.is_divided, per_epoch])
                distributed.barrier()
    Path(folder, str(rank)).write_text(json.dumps(loaded))
    distributed.barrier()  # the other rank may still be connecting to this one
    distributed.destroy_process_group()


@pytest.fixture(scope="module")
def ranks(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> list[list[Loaded]]:
    """What each of two ranks got."""
    folder, sources = tmp_path_factory.mktemp("ranks"), {}
    for number in (ODD, EVEN):
        files = files_of(photos)[:number]
        for name in INSTALLED:
            form = LOADER_BACKENDS[name].format
            copy = written_copy(files, form, FORMATS[form], cache_dir=folder) if form else None
            sources[name, number] = stored(files, copy) if copy else images(files)
    multiprocessing.spawn(of_rank, (str(folder), sources), nprocs=2)
    return [[Loaded(*row) for row in json.loads((folder / str(rank)).read_text())] for rank in range(2)]


def loaded_by(ranks: list[list[Loaded]], *which: Any) -> list[Loaded]:
    return [loaded for own in ranks for loaded in own if (loaded.loader, loaded.images, loaded.shuffle) == which]


@every_loader
@pytest.mark.parametrize("shuffle", [False, True])
def test_two_ranks_share_each_epoch(name: str, shuffle: bool, ranks: list[list[Loaded]]) -> None:
    ours, theirs = loaded_by(ranks, name, EVEN, shuffle)
    assert [(loaded.is_divided, loaded.samples_per_epoch) for loaded in (ours, theirs)] == [(True, EVEN // 2)] * 2
    epochs = [ours.epoch(number) + theirs.epoch(number) for number in (0, 1)]
    assert [Counter(epoch) for epoch in epochs] == [Counter(range(EVEN))] * 2
    assert (epochs[0] == epochs[1]) is not shuffle
    assert (ours.epoch(0) == sorted(ours.epoch(0))) is not shuffle


@every_loader
@pytest.mark.parametrize("shuffle", [False, True])
def test_of_an_odd_number_one_image_at_most_is_left_out_or_comes_twice(
    name: str, shuffle: bool, ranks: list[list[Loaded]]
) -> None:
    ours, theirs = loaded_by(ranks, name, ODD, shuffle)
    for number in (0, 1):
        count = Counter(ours.epoch(number) + theirs.epoch(number))
        assert abs(count.total() - ODD) <= 1
        assert len(count) >= ODD - 1
        assert len(ours.epoch(number)) == ours.samples_per_epoch
        assert len(theirs.epoch(number)) == theirs.samples_per_epoch
