"""What torch says when a GPU is full, in its words as users have reported them."""

from __future__ import annotations

import pytest

from loaderbench.diagnosis.gpu_memory import FRAGMENTED, gpu_shortage

GIB, MIB = 2**30, 2**20
HEAD = "torch.OutOfMemoryError: CUDA out of memory. "
TODAY = (
    f"{HEAD}Tried to allocate 22.00 MiB. GPU 0 has a total capacity of 23.65 GiB of which 11.06 MiB is free. Including "
    "non-PyTorch memory, this process has 23.60 GiB memory in use. Of the allocated memory 22.90 GiB is allocated by "
    "PyTorch, and 194.87 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try"
)
FRAGMENTS = TODAY.replace("194.87 MiB", "9.35 GiB")
SHARED = (
    f"{HEAD}Tried to allocate 20.00 MiB. GPU 1 has a total capacity of 23.69 GiB of which 17.88 MiB is free. Process "
    "1234 has 11.20 GiB memory in use. Including non-PyTorch memory, this process has 12.46 GiB memory in use. Of the "
    "allocated memory 11.99 GiB is allocated by PyTorch, and 17.62 MiB is reserved by PyTorch but unallocated."
)
WITHOUT_PROCESS = (
    f"{HEAD}Tried to allocate 1.70 GiB. GPU 0 has a total capacity of 6.00 GiB of which 0 bytes is free. Of the "
    "allocated memory 2.93 GiB is allocated by PyTorch, and 2.30 GiB is reserved by PyTorch but unallocated."
)


def test_the_sizes_are_read_and_said() -> None:
    found = gpu_shortage(TODAY)
    assert (found.asked, found.total) == (22 * MIB, round(23.65 * GIB))
    assert found.needed == round(23.60 * GIB) + 22 * MIB
    assert str(found) == "The GPU has 23.7 GiB; this process held 23.6 GiB and asked for 22 MiB"


def test_what_other_programs_hold_is_named() -> None:
    assert str(gpu_shortage(SHARED)).endswith("asked for 20 MiB; other programs hold 11.2 GiB")


def test_room_that_the_allocator_keeps_is_fragmented() -> None:
    assert str(gpu_shortage(FRAGMENTS)).endswith(FRAGMENTED)
    assert FRAGMENTED not in str(gpu_shortage(TODAY))


def test_without_a_figure_for_the_process_its_allocator_counts() -> None:
    found = gpu_shortage(WITHOUT_PROCESS)
    assert found.own == pytest.approx(5.23 * GIB, rel=1e-3)
    assert str(found).startswith("The GPU has 6.0 GiB; this process held 5.2 GiB and asked for 1.7 GiB")


@pytest.mark.parametrize("message", ["RuntimeError: CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED", HEAD])
def test_a_message_without_sizes_says_nothing(message: str) -> None:
    found = gpu_shortage(message)
    assert (str(found), found.needed, found.total) == ("", None, None)
