"""The rank of a process, by what a launcher puts into its environment."""

from __future__ import annotations

import pytest

from loaderbench.ranks import rank_in, this_rank


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


@pytest.mark.parametrize(
    ("environment", "rank"),
    [
        ({"LOCAL_RANK": "1", "WORLD_SIZE": "2", "NODE_RANK": "0"}, 1),
        ({"LOCAL_RANK": "1", "WORLD_SIZE": "2"}, 1),
        ({"LOCAL_RANK": "1", "WORLD_SIZE": "4", "NODE_RANK": "1"}, None),
        ({"LOCAL_RANK": "1", "RANK": "3", "WORLD_SIZE": "4", "NODE_RANK": "1"}, 3),
        ({"LOCAL_RANK": "1"}, None),
    ],
)
def test_lightning_numbers_the_processes_of_one_machine(
    environment: dict[str, str], rank: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "NODE_RANK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert this_rank() == rank
