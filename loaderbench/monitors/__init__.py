"""Readers of CPU, memory, disk and GPU. They watch a process tree from outside, so that what is measured runs alone."""

from loaderbench.monitors.blocked import Blocked, BlockedThread, with_looks
from loaderbench.monitors.gauges import Moment, between, over_time
from loaderbench.monitors.gpu import GpuMonitor, GpuReading, count_gpus
from loaderbench.monitors.machine import MachineWatch
from loaderbench.monitors.processes import TreeMonitor
from loaderbench.monitors.sampler import Sample, Sampler, Sampling
from loaderbench.monitors.workers import WorkerWatch

__all__ = [
    "Blocked",
    "BlockedThread",
    "GpuMonitor",
    "GpuReading",
    "MachineWatch",
    "Moment",
    "Sample",
    "Sampler",
    "Sampling",
    "TreeMonitor",
    "WorkerWatch",
    "between",
    "count_gpus",
    "over_time",
    "with_looks",
]
