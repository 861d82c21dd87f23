"""Readers of CPU, memory, disk and GPU. They watch a process tree from outside and leave its Python alone."""

from loaderbench.monitors.blocked import Blocked, BlockedThread, with_looks
from loaderbench.monitors.gauges import over_time
from loaderbench.monitors.gpu import GpuMonitor, GpuReading, count_gpus
from loaderbench.monitors.machine import MachineWatch
from loaderbench.monitors.processes import TreeMonitor
from loaderbench.monitors.sampler import Sampler, Sampling
from loaderbench.monitors.samples import Sample, cpu_percent, gpu_use, series
from loaderbench.monitors.workers import WorkerWatch

__all__ = [
    "Blocked",
    "BlockedThread",
    "GpuMonitor",
    "GpuReading",
    "MachineWatch",
    "Sample",
    "Sampler",
    "Sampling",
    "TreeMonitor",
    "WorkerWatch",
    "count_gpus",
    "cpu_percent",
    "gpu_use",
    "over_time",
    "series",
    "with_looks",
]
