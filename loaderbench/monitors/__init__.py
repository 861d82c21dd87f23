"""Readers of CPU, memory, disk and GPU. They watch a process tree from outside, so that what is measured runs alone."""

from loaderbench.monitors.gpu import GpuMonitor, count_gpus
from loaderbench.monitors.sampler import Sample, Sampler, Sampling

__all__ = ["GpuMonitor", "Sample", "Sampler", "Sampling", "count_gpus"]
