"""One worker has most of the data or the slowest of it, with times, sizes and worker counts drawn at random."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from benchmarks.diagnosis import work
from benchmarks.diagnosis.draws import Draws
from benchmarks.diagnosis.opaque_data import ENDLESS
from benchmarks.diagnosis.scenario import Loop, Scenario, because_of
from benchmarks.diagnosis.steps import device

_DRAW = Draws(20261125)
_KINDS = {"python": work.python, "fourier": work.fourier, "hashing": work.hashing}


class Shards(IterableDataset[Any]):
    """A shard per worker: the last is endless, of `slow_ms` a sample; the others have `others` samples of `ms`."""

    def __init__(self, kind: str, slow_ms: float, ms: float, others: int) -> None:
        self.kind, self.slow_ms, self.ms, self.others = kind, slow_ms, ms, others

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        is_last = info is None or info.id == info.num_workers - 1
        for index in range(ENDLESS if is_last else self.others):
            yield work.sample(index, _KINDS[self.kind](self.slow_ms if is_last else self.ms))


def shards(workers: int, *, batch: int, **data: Any) -> Loop:
    return Loop(lambda: DataLoader(Shards(**data), batch, num_workers=workers), device(0.5), seconds=4.0)


def _one_shard(number: int) -> Scenario:
    """Others have up to 40 samples, and are idle for the rest of the epoch."""
    ms = _DRAW.ms(2, 12)
    arguments = {**_drawn(), "slow_ms": ms, "ms": ms, "others": _DRAW.randint(0, 40)}
    why = "One of {workers} workers has all samples of {ms} ms ({kind}) but {others} of each other one.".format(
        **arguments
    )
    fixes = {"even_shards": {"others": ENDLESS}}
    return Scenario(f"uneven_data_{number}", why, shards, arguments, because_of("sample", "imbalance"), fixes)


def _slow_shard(number: int) -> Scenario:
    """Others have finished batches, which wait for their turn: both words are right."""
    arguments = {**_drawn(), "slow_ms": _DRAW.ms(4, 15), "ms": 0.1, "others": ENDLESS}
    why = "One of {workers} workers has samples of {slow_ms} ms, the others of {ms} ms ({kind}).".format(**arguments)
    words = because_of("sample stragglers", "imbalance order")
    fixes = {"even_shards": {"slow_ms": 1.0}, "out_of_order": {"slow_ms": 1.0}}
    return Scenario(f"uneven_cost_{number}", why, shards, arguments, words, fixes)


def _drawn() -> dict[str, Any]:
    workers, batch, kind = _DRAW.randint(2, 4), _DRAW.choice([2, 4, 8]), _DRAW.choice(list(_KINDS))
    return {"workers": workers, "batch": batch, "kind": kind}


SCENARIOS = tuple(draw(number) for draw in (_one_shard, _slow_shard) for number in range(5))
