"""The rank of a process, by what a launcher puts into its environment."""

from __future__ import annotations

import pytest
from torch import distributed

from loaderbench import ranks
from loaderbench.ranks import rank_in, rank_of_training, ranks_of_training


@pytest.mark.parametrize(
    ("environment", "rank"),
    [
        ({"RANK": "3", "WORLD_SIZE": "8"}, 3),
        ({"RANK": "0", "WORLD_SIZE": "1"}, 0),
        ({"RANK": "3"}, None),
        ({"RANK": "first", "WORLD_SIZE": "8"}, None),
        ({"WORLD_SIZE": "8"}, None),
        ({}, None),
    ],
)
def test_a_rank_has_a_number_and_a_job(environment: dict[str, str], rank: int | None) -> None:
    assert rank_in(environment) == rank


def test_a_rank_without_a_launcher_is_that_of_its_process_group_also_after_it_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Lightning's launcher removes its variables, and the group, before a callback ends."""
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(ranks, "_groups", {})
    monkeypatch.setattr(ranks, "has_ranks", lambda: True)
    monkeypatch.setattr(distributed, "get_rank", lambda: 1)
    for size, found in ((1, (None, None)), (2, (1, 2))):
        monkeypatch.setattr(distributed, "get_world_size", lambda size=size: size)
        assert (rank_of_training(), ranks_of_training()) == found
    monkeypatch.setattr(ranks, "has_ranks", lambda: False)
    assert (rank_of_training(), ranks_of_training()) == (1, 2)
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert (rank_of_training(), ranks_of_training()) == (3, 4)
