"""The rank of a process, by what a launcher puts into its environment."""

from __future__ import annotations

import pytest

from loaderbench.ranks import rank_in


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
