"""The machine as a loader sees it: resources available to this process, not those of the host."""

from loaderbench.environment.cgroups import (
    Limits,
    oom_kills,
    process_limit,
    quota_periods,
    read_limits,
    refused_processes,
)
from loaderbench.environment.machine import allotted_to, busy_percent, cpus_allotted, describe_machine

__all__ = [
    "Limits",
    "allotted_to",
    "busy_percent",
    "cpus_allotted",
    "describe_machine",
    "oom_kills",
    "process_limit",
    "quota_periods",
    "read_limits",
    "refused_processes",
]
