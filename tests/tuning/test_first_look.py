"""How fast a loader is, by a look in a copy of the process."""

from __future__ import annotations

import time
from typing import Any

import pytest
from torch.utils.data import DataLoader

from loaderbench.tuning import tune
from loaderbench.tuning.forked import Returned
from loaderbench.tuning.tune import rate_of


class Samples:
    def __init__(self, count: int, takes_s: float, fails: bool = False) -> None:
        self.count, self.takes_s, self.fails = count, takes_s, fails
        self.loaded = 0

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> int:
        self.loaded += 1
        time.sleep(self.takes_s)
        if self.fails:
            raise ValueError("planted")
        return index


def loader(*arguments: Any, **options: Any) -> Any:
    return DataLoader(Samples(*arguments), batch_size=4, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_short_epoch_is_taken_whole_and_a_long_one_in_part(workers: int) -> None:
    for count in (8, 100_000):
        taken = loader(count, 0.002, num_workers=workers)
        rate = rate_of(taken, 0.3)
        assert rate is not None
        assert 0 < rate < 500, "a sample takes two milliseconds at least"
        assert taken.dataset.loaded == 0, "of the script's own"


def test_what_fails_or_hangs_has_no_rate() -> None:
    assert rate_of(loader(8, 0.0, True), 0.3) is None
    assert rate_of(loader(8, 60.0), 0.3) is None


def test_ctrl_c_ends_tuning_during_the_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune, "call_in_copy", lambda _: Returned(interrupted=True))
    with pytest.raises(KeyboardInterrupt):
        rate_of(loader(8, 0.0), 0.3)
