"""Where one cause ends and another begins. Each says why it lies where it does; none was fitted to a scenario."""

NOTICED = 0.05
"""As of the data wait: below it nothing is worth the work."""

TRANSFER = 0.1
"""Of the loop's time. A marked stage is the host's time, of which a part may lie beside the device's."""

MOST = 0.5
"""A part that explains most of a whole names it."""

ALMOST, TIED = 0.6, 0.85
"""A second stage of this size, beside the dearest one, is worth a word; from the other on which is dearer is noise."""

CONFLICT = 1.3
"""Measured throughput over what the traced times allow: above it they do not explain the rate."""

QUEUED = 0.3
"""Time in a run queue, of all time. Two threads on one CPU have 0.5, three on two 0.33; the noise of a machine that is
just full has been seen up to 0.1."""

RUNNABLE = 1.25
"""Threads that want to run, for each CPU: as many workers as CPUs, and a process that takes their batches, are 1.1."""

BLOCKED = 0.5
"""Of the time with work to do. A worker that decodes has less than 0.05, one that reads from afar more than 0.9."""

LOCKED = 0.25
"""Looks that see a lock. Of two workers that hold one lock for all of their work, one stands at it at any time: 0.5."""

ONE_THREAD = 0.85
"""CPUs that one busy thread uses at least, with what the clock and the neighbours take."""

MORE_THAN_ONE = 1.3
"""Threads that want to run, for each process that loads: libraries start threads of their own."""

LIBRARY_THREADS = 0.1
"""Of a worker's time in its other threads. Without libraries, only the thread that sends batches is among them."""

SPARE_CPUS = 0.4
"""CPUs that this program leaves: with less there is no room for a worker that would bring a tenth on two CPUs."""

IDLE_CPUS = 0.3
"""Others disturb when they use so many CPUs while not so many are left idle by all."""

MOST_OF_A_CPU = 0.5
"""A worker that is the limit uses at least this much of a CPU."""

PART_OF_CPUS = 0.1
"""On many CPUs, a tenth counts where the numbers above are smaller, since filling less gains too little: of all CPUs if
they are to be left for workers, of those in use if others disturb."""

IDLE = 0.4
"""Of the workers' time. Where one of two has all the data, they are idle for 0.5; busy ones were seen up to 0.3."""

THROTTLED = 0.1
"""Of the quota's periods: a burst at an epoch's start is no limit."""

KERNEL = 0.5
"""Of the CPU time. System calls take the kernel's time, too: page faults have to account for most of it."""

FAULT_S, HUGE_FAULT_S = 2.5e-6, 2e-4
"""About what the kernel needs for a page fault with zeroing, of 4 KiB and of 2 MiB. `benchmarks/page_faults.py`
measured 2.1 to 4.3 and 190 to 250 microseconds on a virtual machine. Twice as much still counts (`MOST`), since other
work slows the memory."""

BYTES_GROW, BYTES_SEEN = 0.5, 0.15
"""The part of the blocked time that grows with the bytes read. Where W readers share one way, each waits for the bytes
of all, and a W-th of its time grows with its own; less than the second is within the noise of a few hundred reads."""

LARGE_FILE_BYTES = 2**20
"""Where all files are of one size, what one of this size is waited for is its bytes: latencies are for small ones."""

SHORT_BATCH_S = 1e-3
"""About twice what the smallest batch was seen to cost on its way out of a worker, on a two-core machine."""

LOOKS_APART = 0.25
"""Between the share of looks and a measured share of time: 20 looks, those of a second, have a standard error of up to
0.11."""
