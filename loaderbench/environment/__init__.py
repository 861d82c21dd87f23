"""The machine as a loader sees it: what is available to this process, not what the host has."""

from loaderbench.environment.machine import (
    Limits,
    cpus_allotted,
    describe_machine,
    oom_kills,
    quota_periods,
    read_limits,
)

__all__ = ["Limits", "cpus_allotted", "describe_machine", "oom_kills", "quota_periods", "read_limits"]
