"""How much memory workers hold, and how much of it is in swap."""

from __future__ import annotations

import pytest
from proc_folder import Machine


def test_the_largest_sum_of_proportional_memory_is_kept(machine: Machine) -> None:
    machine.put(1)
    machine.put(2)
    machine.read(1, 2)
    machine.read(1, 2)
    assert "was not read" in machine.states().not_measured["pss_bytes"]
    machine.watch.read_memory([1, 2])
    assert "not readable" in machine.states().not_measured["pss_bytes"]
    for sizes_kb in ((30, 20), (10, 5)):
        for pid, size_kb in zip((1, 2), sizes_kb, strict=True):
            (machine.root / str(pid) / "smaps_rollup").write_text(f"0-f ---p [rollup]\nRss: 99 kB\nPss: {size_kb} kB\n")
        machine.watch.read_memory([1, 2, 3])
    found = machine.states()
    assert found.pss_bytes == 50 * 1024
    assert "pss_bytes" not in found.not_measured


@pytest.mark.parametrize(
    ("kb_of_each", "swapped_kb"),
    [
        (((40, 40), (25, 25)), 65),  # each process has its own pages
        (((60, 30), (60, 30)), 60),  # they share pages
        (((60, 0), (60, 0)), 60),  # shared memory, of which no process has a part
        (((0, 0), (0, 0)), 0),
    ],
)
def test_the_largest_sum_of_swapped_memory_counts_no_page_twice(
    machine: Machine, kb_of_each: tuple[tuple[int, int], ...], swapped_kb: int
) -> None:
    for pid in (1, 2):
        machine.put(pid)
    machine.read(1, 2)
    machine.read(1, 2)
    for pid, (all_kb, part_kb) in zip((1, 2), kb_of_each, strict=True):
        text = f"0-f ---p [rollup]\nPss: 9 kB\nSwap: {all_kb} kB\nSwapPss: {part_kb} kB\n"
        (machine.root / str(pid) / "smaps_rollup").write_text(text)
    machine.watch.read_memory([1, 2])
    assert machine.states().swapped_bytes == swapped_kb * 1024
    for pid in (1, 2):
        (machine.root / str(pid) / "smaps_rollup").write_text("Pss: 9 kB\nSwap: 0 kB\nSwapPss: 0 kB\n")
    machine.watch.read_memory([1, 2])
    assert machine.states().swapped_bytes == swapped_kb * 1024
    assert "swapped_bytes" not in machine.states().not_measured


def test_without_the_sums_the_largest_process_counts(machine: Machine) -> None:
    for pid, kb in ((1, 40), (2, 70)):
        machine.put(pid)
        (machine.root / str(pid) / "status").write_text(f"VmRSS:\t 9 kB\nVmSwap:\t {kb} kB\n")
    machine.read(1, 2)
    machine.read(1, 2)
    machine.watch.read_memory([1, 2])
    assert machine.states().swapped_bytes == 70 * 1024


@pytest.mark.parametrize(("major_faults", "swapped_bytes"), [(5, 70 * 1024), (0, None)])
def test_a_process_with_major_faults_is_asked_for_its_swapped_memory_at_once(
    machine: Machine, major_faults: int, swapped_bytes: int | None
) -> None:
    machine.put(1)
    machine.read(1)
    machine.put(1, faults=(9, major_faults))
    (machine.root / "1" / "status").write_text("VmRSS:\t 9 kB\nVmSwap:\t 70 kB\n")
    machine.read(1)
    machine.remove(1)
    machine.watch.read_memory([1])  # too late
    assert machine.states().swapped_bytes == swapped_bytes


def test_swapped_memory_that_cannot_be_read_has_a_reason(machine: Machine) -> None:
    machine.put(1)
    machine.read(1)
    machine.read(1)
    assert "was not read" in machine.states().not_measured["swapped_bytes"]
    machine.watch.read_memory([1])
    assert machine.states().swapped_bytes is None
    assert "not readable" in machine.states().not_measured["swapped_bytes"]
