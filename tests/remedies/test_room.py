"""Fixes for too little memory: the size to set, and how to set it in a container."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sweeps import answers, short_of_room

from loaderbench.remedies.room import UNTRIED

MIB = 1 << 20


@pytest.mark.parametrize(
    ("has_mib", "needs_mib", "size"),
    [(64, 147, "512 MiB"), (64, None, "128 MiB"), (1, 74, "256 MiB"), (300, 700, "2.0 GiB"), (64, 64, "128 MiB")],
)
def test_shared_memory_is_to_have_twice_what_was_needed(has_mib: int, needs_mib: int | None, size: str) -> None:
    needed = None if needs_mib is None else needs_mib * MIB
    found = answers(short_of_room("shared_memory_full", limit_bytes=has_mib * MIB, needed_bytes=needed))
    advice = found["larger_shared_memory"]
    assert (advice.title, advice.status, advice.basis) == (f"Raise the size of /dev/shm to {size}", "open", "heuristic")
    assert advice.reason == UNTRIED
    assert f"/dev/shm has {has_mib} MiB" in advice.evidence[0]
    assert ("about" in advice.evidence[0]) == (needs_mib is not None)
    assert "larger_memory_limit" not in found


def test_the_flag_of_the_container_is_in_the_code() -> None:
    found = answers(short_of_room("shared_memory_full", limit_bytes=64 * MIB, needed_bytes=100 * MIB))
    code = str(found["larger_shared_memory"].snippet)
    assert "docker run --shm-size=256m" in code
    assert "emptyDir: {medium: Memory, sizeLimit: 256Mi}" in code


@pytest.mark.parametrize("kind", ["host_memory", "worker_killed", "process_killed", "fork_server_killed"])
def test_a_memory_limit_is_to_be_doubled(kind: str) -> None:
    found = answers(short_of_room(kind, limit_bytes=900 * MIB, needed_bytes=100 * MIB))
    assert found["larger_memory_limit"].title == "Raise the memory limit to 2.0 GiB"
    assert "docker run --memory=2048m" in str(found["larger_memory_limit"].snippet)
    assert "larger_shared_memory" not in found


def test_other_failures_are_no_shortage() -> None:
    given = short_of_room("collate", limit_bytes=64 * MIB)
    assert not {"larger_shared_memory", "larger_memory_limit"} & answers(given).keys()
    profile = replace(short_of_room("shared_memory_full", limit_bytes=64 * MIB), profile=True)
    assert "larger_shared_memory" not in answers(profile)


@pytest.mark.parametrize("highest", [None, (2 << 30) - 1])
def test_a_memory_limit_is_raised_only_up_to_the_memory_of_the_machine(highest: int | None) -> None:
    given = short_of_room("worker_killed", limit_bytes=900 * MIB)
    assert "larger_memory_limit" not in answers(replace(given, highest_memory_limit_bytes=highest))
    assert "larger_memory_limit" in answers(replace(given, highest_memory_limit_bytes=2 << 30))


def test_a_full_gpu_is_no_shortage_of_the_host() -> None:
    assert "larger_memory_limit" not in answers(short_of_room("device_memory", limit_bytes=80 << 30))
