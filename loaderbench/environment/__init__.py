"""The machine as a loader sees it: what is available to this process, not what the host has."""

from loaderbench.environment.cgroups import (
    Limits,
    oom_kills,
    process_limit,
    quota_periods,
    read_limits,
    refused_processes,
)
from loaderbench.environment.machine import cpus_allotted, cpus_allotted_to, describe_machine

__all__ = [
    "Limits",
    "cpus_allotted",
    "cpus_allotted_to",
    "describe_machine",
    "oom_kills",
    "process_limit",
    "quota_periods",
    "read_limits",
    "refused_processes",
]
