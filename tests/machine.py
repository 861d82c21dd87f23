"""A machine for runs that tests make up."""

from loaderbench.records import Environment

TWO_CPUS = Environment(
    cpus_allotted=2.0,
    cpus_online=2,
    cpu_model=None,
    memory_total_bytes=1,
    memory_limit_bytes=None,
    shm_total_bytes=None,
    open_files_limit=None,
    platform="",
    python="",
    versions={},
    start_method="fork",
)
"""Two CPUs, and nothing else is known."""
