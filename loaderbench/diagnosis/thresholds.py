"""The thresholds that separate causes, each with the reason for its value; none was fitted to a benchmark scenario."""

NOTICED = 0.05
"""Minimum share of time, such as data wait, that is worth fixing."""

TRANSFER = 0.1
"""Minimum share of the loop's time for a copy bound. A marked stage is host time, which can overlap device time."""

MOST = 0.5
"""The share from which a part explains, and names, the total."""

ALMOST, TIED = 0.6, 0.85
"""Ratio of the second-largest stage to the largest: worth mentioning from `ALMOST`, indistinguishable from `TIED`."""

CONFLICT = 1.3
"""Ratio of measured throughput to what the traced times allow; above it, these do not explain the rate."""

QUEUED = 0.3
"""Minimum share of time in a run queue.

Two threads on one CPU have 0.5, three on two 0.33; up to 0.1 was observed as noise on a machine that is just saturated.
"""

RUNNABLE = 1.25
"""Threads that want to run, per CPU; one worker per CPU plus a process that takes their batches gives 1.1."""

BLOCKED = 0.5
"""Blocked share of the time with work. A worker that decodes has below 0.05, one with remote reads above 0.9."""

LOCKED = 0.25
"""Share of checks that find a lock. If two workers hold one lock for all of their work, it is 0.5: one always waits."""

ONE_THREAD = 0.85
"""CPUs that one busy thread uses at least, after losses to clock resolution and neighbors."""

MORE_THAN_ONE = 1.3
"""Threads that want to run, per loading process; above it, libraries start their own threads."""

LIBRARY_THREADS = 0.1
"""CPU share of a worker's other threads. If the one that sends batches is unknown, it is among them."""

SPARE_CPUS = 0.4
"""Minimum CPUs left for another worker; with less, on two CPUs, it would gain less than a tenth."""

IDLE_CPUS = 0.3
"""Other programs disturb if they use at least this many CPUs while fewer are idle."""

MOST_OF_A_CPU = 0.5
"""Minimum CPU share of a worker that is the limit."""

PART_OF_CPUS = 0.1
"""Share of many CPUs, used if it exceeds the values above, because filling fewer gains too little.

Applies to all CPUs when left for workers, and to the CPUs in use when other programs disturb.
"""

IDLE = 0.4
"""Idle share of the workers' time. If one of two has all the data, it is 0.5; busy workers reached up to 0.3."""

THROTTLED = 0.1
"""Minimum share of throttled quota periods; a burst at the start of an epoch is not a limit."""

KERNEL = 0.5
"""Minimum kernel share of CPU time. System calls count too, so page faults must explain most of it."""

FAULT_S, HUGE_FAULT_S = 2.5e-6, 2e-4
"""Approximate kernel seconds per page fault with zeroing, for 4 KiB and 2 MiB pages.

`benchmarks/page_faults.py` measured 2.1 to 4.3 and 190 to 250 microseconds on a virtual machine. Twice as much still
counts (`MOST`), because other work slows the memory down.
"""

SWAP_FAULT_S = 8e-5
"""Approximate most kernel seconds per page fault that reads from swap, with making room for the page.

On a virtual machine with a fast disk, it was 21 microseconds for pages that are only read, and 79 for those that are
written, each of which also writes another page to swap.
"""

LONGEST_SWAP_FAULT_S = 2e-2
"""The longest typical page fault that reads from swap: a hard disk seeks for it, after other reads."""

BYTES_GROW, BYTES_SEEN = 0.5, 0.15
"""The share of blocked time that grows with the bytes read.

If W readers share one path, each waits for the bytes of all, and one W-th of its time grows with its own; less than the
second value is noise for a few hundred reads.
"""

LARGE_FILE_BYTES = 2**20
"""Minimum file size for bandwidth to be the limit if all files have one size; smaller files are limited by latency."""

SHORT_BATCH_S = 1e-3
"""Twice the smallest observed cost of handing a batch over from a worker, on a two-core machine."""

GIL_WAIT_S = 1e-3
"""A fifth of Python's default switch interval: one wait in five or more is for a thread that keeps the GIL so long."""

LOOKS_APART = 0.25
"""Tolerance between a share of checks and a measured share of time.

20 checks, one second's worth, have a standard error of up to 0.11.
"""
