"""What is unusual about a GPU: throttling disturbs measurements; a slow link or remote CPUs only cost speed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import fmean

from loaderbench.cpu_lists import cpus_of
from loaderbench.diagnosis.copy_bandwidth import PcieLink
from loaderbench.records import SW_POWER_CAP, Environment, Gpu, GpuUse, Trial

THROTTLED_SHARE = 0.05  # minimum share of the readings
FEWEST_PERCENT = 10.0  # minimum share of time with a kernel resident, because an idle link saves power at a lower speed


def gpu_warnings(trials: Sequence[Trial], environment: Environment) -> Iterator[str]:
    """Yield the reasons to distrust a measurement, for each GPU that a trial used."""
    for gpu, uses in _used(trials, environment):
        yield from _throttled(gpu, uses)


def gpu_setup_notes(trials: Sequence[Trial], environment: Environment) -> Iterator[str]:
    """Yield what costs speed in every trial alike, for each GPU that a trial used."""
    for gpu, uses in _used(trials, environment):
        yield from _slow_link(gpu, uses)
        yield from _far_cpus(gpu, environment)


def _used(trials: Sequence[Trial], environment: Environment) -> Iterator[tuple[Gpu, list[GpuUse]]]:
    for gpu in environment.gpus:
        if uses := [use for trial in trials for use in trial.gpus if use.index == gpu.index]:
            yield gpu, uses


def power_notes(trials: Sequence[Trial], environment: Environment) -> Iterator[str]:
    """Yield a note for each GPU at its power limit, which is normal for a large GPU at full load."""
    for gpu in environment.gpus:
        uses = [use for trial in trials for use in trial.gpus if use.index == gpu.index]
        if shares := _shares(uses, lambda reason: reason == SW_POWER_CAP):
            yield f"GPU {gpu.index} reached its power limit: {shares} of the readings. That is normal at full load"


def _throttled(gpu: Gpu, uses: Sequence[GpuUse]) -> Iterator[str]:
    if shares := _shares(uses, lambda reason: reason != SW_POWER_CAP):
        yield f"GPU {gpu.index} was throttled: {shares} of the readings"


def _shares(uses: Sequence[GpuUse], counts: Callable[[str], bool]) -> str:
    """The reasons that count, each with its share of the readings; empty if none was active for long."""
    known = [use.throttled for use in uses if use.throttled is not None]
    reasons = dict.fromkeys(reason for found in known for reason in found if counts(reason))
    shares = {reason: fmean(found.get(reason, 0.0) for found in known) for reason in reasons}
    words = [f"{reason} in {share:.0%}" for reason, share in shares.items() if share >= THROTTLED_SHARE]
    return ", ".join(words)


def _slow_link(gpu: Gpu, uses: Sequence[GpuUse]) -> Iterator[str]:
    """Compare the highest link speed under load with the maximum; generation and width are checked together."""
    busy = [use for use in uses if (use.utilization_percent or 0.0) >= FEWEST_PERCENT]
    generation = max((use.pcie_generation for use in busy if use.pcie_generation is not None), default=None)
    width = max((use.pcie_width for use in busy if use.pcie_width is not None), default=None)
    slower = generation is not None and generation < (gpu.pcie_max_generation or 0)
    narrower = width is not None and width < (gpu.pcie_max_width or 0)
    if slower or narrower:
        found, most = PcieLink(generation, width), PcieLink(gpu.pcie_max_generation, gpu.pcie_max_width)
        yield (
            f"GPU {gpu.index}: {found} under load (maximum: {most}), which slows copies to the GPU. "
            "Check slot, riser and BIOS settings"
        )


def _far_cpus(gpu: Gpu, environment: Environment) -> Iterator[str]:
    """Warn only if the change costs no CPUs: all allowed CPUs are remote, or the local ones suffice."""
    if gpu.near_cpus is None or environment.cpus_allowed is None:
        return
    near, allowed = cpus_of(gpu.near_cpus), cpus_of(environment.cpus_allowed)
    far = allowed - near
    if not near or not far or (allowed & near and len(near) < environment.cpus_allotted):
        return
    node = "" if gpu.numa_node is None else f" (NUMA node {gpu.numa_node})"
    count = f"{len(far)} of {len(allowed)}"
    yield (
        f"GPU {gpu.index} is local to CPUs {gpu.near_cpus}{node}, but {count} available CPUs are remote. "
        f"Start with taskset -c {gpu.near_cpus}, or numactl"
    )
