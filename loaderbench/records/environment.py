"""What a run was made on and of: the machine, the data, and the plan."""

from __future__ import annotations

from dataclasses import dataclass, field

from loaderbench.records.words import Config, Reasons, Scalar


@dataclass(frozen=True)
class Gpu:
    """One device as CUDA numbers it; NVML is asked for the same UUID.

    The link's maximum is that of device and slot together. `near_cpus` are on the same NUMA node, as `0-15,32-47`.
    `platform` is `CUDA 13.0`, `ROCm 6.4`, `XPU` or `MPS`; empty in runs of earlier versions.
    """

    index: int
    uuid: str
    name: str
    memory_total_bytes: int
    pcie_max_generation: int | None = None
    pcie_max_width: int | None = None
    sm_clock_max_mhz: float | None = None
    near_cpus: str | None = None
    numa_node: int | None = None
    not_measured: Reasons = field(default_factory=dict)
    platform: str = ""

    @property
    def kind(self) -> str:
        """What torch calls devices of this platform, which is `cuda` for ROCm too."""
        return "cuda" if self.platform.startswith(("CUDA", "ROCm")) or not self.platform else self.platform.lower()

    @property
    def device(self) -> str:
        """As torch names it: `cuda:0`."""
        return f"{self.kind}:{self.index}"

    @property
    def of_nvidia(self) -> bool:
        """Whether NVML can know it."""
        return self.kind == "cuda" and not self.platform.startswith("ROCm")


@dataclass(frozen=True, kw_only=True)
class Environment:
    """The machine and the versions a run was made on. `cpus_allotted` is min(affinity, cgroup quota).

    `gpus` are those that torch can use, `gpus_of_driver` is how many the driver has for this process. `cpus_allowed`
    is the affinity, as `0-15,32-47`.
    """

    cpus_allotted: float
    cpus_online: int
    cpu_model: str | None
    memory_total_bytes: int | None
    memory_limit_bytes: int | None
    shm_total_bytes: int | None
    open_files_limit: int | None
    platform: str
    python: str
    versions: dict[str, str]
    start_method: str
    gpus: tuple[Gpu, ...] = ()
    not_measured: Reasons = field(default_factory=dict)
    gpus_of_driver: int = 0
    cpus_allowed: str | None = None


@dataclass(frozen=True)
class DatasetSummary:
    """What the trials read. `total_files` is `None` if the folder was not listed completely."""

    description: str
    files: int | None = None
    classes: int | None = None
    total_files: int | None = None
    bad_files: int | None = None
    bad_images: tuple[str, ...] = ()
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True)
class PlanSummary:
    """What was meant to be measured. `collapsed` names each axis that lost values, and why.

    Under `dataset`, it says why configurations are left out whose options cannot be combined. `configs` are its
    configurations in the order of the grid, the `baseline` among them.
    """

    axes: dict[str, list[Scalar]]
    configurations: int
    rounds: int
    trials: int
    configs: tuple[Config, ...]
    baseline: Config
    baseline_why: str
    collapsed: Reasons = field(default_factory=dict)
