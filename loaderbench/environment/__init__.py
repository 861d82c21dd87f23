"""The machine as a loader sees it: what is allotted to this process, not what the host has."""

from loaderbench.environment.cgroups import Limits, oom_kills, quota_periods, read_limits
from loaderbench.environment.machine import cpus_allotted, describe_machine

__all__ = ["Limits", "cpus_allotted", "describe_machine", "oom_kills", "quota_periods", "read_limits"]
