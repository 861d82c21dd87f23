"""Sets of CPUs, written and read."""

from __future__ import annotations

from hypothesis import given
from hypothesis.strategies import integers, sets

from loaderbench.cpu_lists import cpu_list, cpus_of


def test_runs_are_written_by_their_ends() -> None:
    assert cpu_list([3, 0, 1, 2, 8, 32, 33]) == "0-3,8,32-33"
    assert cpu_list([]) == ""


@given(sets(integers(0, 1023)))
def test_what_is_written_is_read(cpus: set[int]) -> None:
    assert cpus_of(cpu_list(cpus)) == cpus
