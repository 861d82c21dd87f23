"""Cost of a page fault with zeroing in the kernel, for 4 KiB and 2 MiB: the basis of two thresholds.

    python benchmarks/page_faults.py [--rounds 30]

Each round maps memory, writes one byte to each page, and divides the system time by the kernel's count of faults.
Prints a table (Markdown) of medians with quartiles, and the thresholds `FAULT_S` and `HUGE_FAULT_S`. Linux only.
"""

from __future__ import annotations

import argparse
import mmap
import resource
from collections.abc import Callable
from pathlib import Path
from statistics import quantiles

from loaderbench.diagnosis.thresholds import FAULT_S, HUGE_FAULT_S
from loaderbench.monitors import proc

PAGE, HUGE = 1 << 12, 1 << 21
SIZE = 256 << 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    rounds = parser.parse_args().rounds
    print("| page | microseconds per fault (quartiles) | threshold |\n| --- | --: | --: |")
    for name, advice, step, faults, threshold_s in (
        ("4 KiB", mmap.MADV_NOHUGEPAGE, PAGE, small_faults, FAULT_S),
        ("2 MiB", mmap.MADV_HUGEPAGE, HUGE, huge_faults, HUGE_FAULT_S),
    ):
        found = [fault_s(advice, step, faults) for _ in range(rounds)]
        known = [each_s * 1e6 for each_s in found if each_s is not None]
        print(f"| {name} | {quartiles_of(known)} | {threshold_s * 1e6:g} |")


def quartiles_of(each_us: list[float]) -> str:
    """Median and quartiles, or why there are none."""
    if len(each_us) < 2:
        return "not measured: the kernel gave no such pages"
    low, middle, high = quantiles(each_us, n=4)
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def fault_s(advice: int, step: int, faults: Callable[[], int]) -> float | None:
    """System seconds per fault; `None` if the kernel gave no such page."""
    with mmap.mmap(-1, SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:  # shared memory has no huge pages
        memory.madvise(advice)
        before, began_s = faults(), system_s()
        for place in range(0, SIZE, step):
            memory[place] = 1
        took_s, count = system_s() - began_s, faults() - before
    return took_s / count if count >= SIZE // step // 2 else None


def system_s() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_stime


def small_faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def huge_faults() -> int:
    return proc.parse_huge_faults(Path("/proc/vmstat").read_text()) or 0


if __name__ == "__main__":
    main()
