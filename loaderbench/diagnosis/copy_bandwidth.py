"""Bandwidth of copies to the GPU: as measured, as needed by the GPU alone, and the capacity of its PCIe link."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from loaderbench.records import CopyBandwidth, CopySpeed, Evidence, GpuUse, Interval, Isolation, IsolationRun, Trial
from loaderbench.statistics.intervals import mean_interval

_GB_PER_S_OF_LANE = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}
"""GB/s per lane of each generation, after its line code. Source: PCI-SIG, PCI Express Base Specification."""

NOT_COPIED = "no isolation run copied batches to a GPU"


@dataclass(frozen=True)
class PcieLink:
    """PCIe generation and lanes; `None` if NVML does not report them. `str` omits unknown ones: `PCIe 4 x16`."""

    generation: int | None
    lanes: int | None

    @property
    def gb_per_s(self) -> float | None:
        """Bandwidth in one direction, in GB/s (10**9 bytes); `None` if generation or width is unknown."""
        of_lane = _GB_PER_S_OF_LANE.get(self.generation or 0)
        return of_lane * self.lanes if of_lane is not None and self.lanes is not None else None

    def __str__(self) -> str:
        generation = f" {self.generation}" if self.generation is not None else ""
        return f"PCIe{generation}{f' x{self.lanes}' if self.lanes is not None else ''}"


def with_bandwidth(found: Isolation, runs: Sequence[Trial], loader: Mapping[str, Any]) -> Isolation:
    """The isolation runs with the bandwidth of their copies, or why it is unknown. `loader` are the fixed arguments."""
    replays = [trial for trial in runs if trial.isolation == "replay_host"]
    alone = next(run for run in found.runs if run.name == "replay_device")
    pinned = bool({**loader, **found.config}.get("pin_memory"))
    copies = describe_copies(replays, alone, pinned=pinned)
    reasons = {} if copies else {"copy": NOT_COPIED}
    return replace(found, copy=copies, not_measured={**found.not_measured, **reasons})


def describe_copies(replays: Sequence[Trial], alone: IsolationRun, *, pinned: bool) -> CopyBandwidth | None:
    """Combine the copy speeds of replays from the host; `None` if there are none.

    `alone` replays batches that are already on the GPU, so its rate is the GPU's own. `pinned` says which memory the
    configuration copies from.
    """
    copied = [(use, use.copy_speed) for trial in replays for use in trial.gpus if use.copy_speed is not None]
    if not copied:
        return None
    uses, speeds = zip(*copied, strict=True)
    samples_per_s = alone.samples_per_s.est if alone.samples_per_s else None
    link_gb_per_s = _fastest_link(uses).gb_per_s
    wanted_gb_per_s = samples_per_s and samples_per_s * speeds[0].bytes_per_sample / 1e9
    why_not_wanted = alone.not_measured.get("samples_per_s", "the rate of the GPU alone was not measured")
    known = (
        ("wanted_gb_per_s", wanted_gb_per_s, why_not_wanted),
        ("link_gb_per_s", link_gb_per_s, "PCIe generation or width is unknown"),
    )
    return CopyBandwidth(
        pinned=pinned,
        bytes_per_sample=speeds[0].bytes_per_sample,
        pinned_gb_per_s=_mean_speed(speeds, "pinned_gb_per_s"),
        pageable_gb_per_s=_mean_speed(speeds, "pageable_gb_per_s"),
        wanted_gb_per_s=wanted_gb_per_s,
        link_gb_per_s=link_gb_per_s,
        not_measured={name: why for name, value, why in known if value is None},
    )


def _mean_speed(speeds: Iterable[CopySpeed], name: str) -> Interval:
    """The confidence interval of the replays' estimates; the unit is the process."""
    return mean_interval([getattr(speed, name).est for speed in speeds])


def _fastest_link(uses: Sequence[GpuUse]) -> PcieLink:
    """The fastest link that was read, because an idle link saves power at a lower speed."""
    links = [PcieLink(use.pcie_generation, use.pcie_width) for use in uses]
    return max(links, key=lambda link: link.gb_per_s or 0.0)


def copy_evidence(found: CopyBandwidth) -> Evidence:
    """Evidence such as `pageable 6.1 GB/s, pinned 24.0 GB/s; training needs 4.2 GB/s`."""
    kinds = {"pinned": found.pinned_gb_per_s.est, "pageable": found.pageable_gb_per_s.est}
    own = "pinned" if found.pinned else "pageable"
    other = "pageable" if found.pinned else "pinned"
    wanted = "" if found.wanted_gb_per_s is None else f"; training needs {found.wanted_gb_per_s:.2g} GB/s"
    return Evidence("cause", "Copy bandwidth", f"{own} {kinds[own]:.3g} GB/s, {other} {kinds[other]:.3g} GB/s{wanted}")
