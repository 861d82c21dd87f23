"""A PCIe link: its name, and the bandwidth of its generation and width."""

from __future__ import annotations

from dataclasses import dataclass

_GB_PER_S_OF_LANE = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}
"""Of each generation, after its line code. Source: PCI-SIG, PCI Express Base Specification."""


@dataclass(frozen=True)
class PcieLink:
    """Generation and lanes; `None` where NVML does not report them. `str` leaves out what is unknown: `PCIe 4 x16`."""

    generation: int | None
    lanes: int | None

    @property
    def gb_per_s(self) -> float | None:
        """Bandwidth one way, in GB/s (10**9 bytes); `None` where generation or width is unknown."""
        of_lane = _GB_PER_S_OF_LANE.get(self.generation or 0)
        return of_lane * self.lanes if of_lane is not None and self.lanes is not None else None

    def __str__(self) -> str:
        generation = f" {self.generation}" if self.generation is not None else ""
        return f"PCIe{generation}{f' x{self.lanes}' if self.lanes is not None else ''}"
