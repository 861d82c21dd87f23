"""Monitors of CPU, memory, disk and GPU. They observe a process tree from outside, without code in its processes."""

from loaderbench.monitors.blocked import Blocked, BlockedThread, kind_at, with_looks
from loaderbench.monitors.gauges import over_time
from loaderbench.monitors.gpu import BusyPeriod, GpuMonitor, GpuReading
from loaderbench.monitors.gpu_thread import GpuThread, Pause
from loaderbench.monitors.gpu_use import Window, gpu_series, gpu_use, with_copy_speed
from loaderbench.monitors.machine import MachineWatch, ProgramUse, use_of_ranks
from loaderbench.monitors.nvml import count_gpus, gpus_used_by
from loaderbench.monitors.process_tree import TreeMonitor
from loaderbench.monitors.python_threads import PythonThreads
from loaderbench.monitors.sampler import SLOW_EVERY, Sample, Sampler, Sampling, cpu_percent, series
from loaderbench.monitors.workers import WorkerWatch

__all__ = [
    "SLOW_EVERY",
    "Blocked",
    "BlockedThread",
    "BusyPeriod",
    "GpuMonitor",
    "GpuReading",
    "GpuThread",
    "MachineWatch",
    "Pause",
    "ProgramUse",
    "PythonThreads",
    "Sample",
    "Sampler",
    "Sampling",
    "TreeMonitor",
    "Window",
    "WorkerWatch",
    "count_gpus",
    "cpu_percent",
    "gpu_series",
    "gpu_use",
    "gpus_used_by",
    "kind_at",
    "over_time",
    "series",
    "use_of_ranks",
    "with_copy_speed",
    "with_looks",
]
