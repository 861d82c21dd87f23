"""The environment of a run: the machine, the dataset and the plan."""

from __future__ import annotations

from dataclasses import dataclass, field

from loaderbench.records.words import Config, Reasons, Scalar


@dataclass(frozen=True)
class Gpu:
    """One device, numbered as in CUDA and matched to NVML by UUID.

    The PCIe maxima are the lower of the device's and the slot's. `near_cpus` are the CPUs of the same NUMA node, such
    as `0-15,32-47`. `platform` is `CUDA 13.0`, `ROCm 6.4`, `XPU` or `MPS`; empty in runs of earlier versions.
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
        """The device type that torch uses for this platform, such as `cuda`, which also covers ROCm."""
        return "cuda" if self.platform.startswith(("CUDA", "ROCm")) or not self.platform else self.platform.lower()

    @property
    def device(self) -> str:
        """The device as torch names it, such as `cuda:0`."""
        return f"{self.kind}:{self.index}"

    @property
    def of_nvidia(self) -> bool:
        """Whether NVML can report on this device."""
        return self.kind == "cuda" and not self.platform.startswith("ROCm")


@dataclass(frozen=True, kw_only=True)
class Environment:
    """The machine and the package versions of a run. `cpus_allotted` is min(affinity, cgroup quota).

    `gpus` are the GPUs that torch can use; `gpus_of_driver` is the number that the driver reports to this process.
    `cpus_allowed` is the affinity, such as `0-15,32-47`.
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

    @property
    def sharable_memory_bytes(self) -> int | None:
        """The smallest of the machine's memory, the container's limit, and the size of `/dev/shm`."""
        known = (self.memory_total_bytes, self.memory_limit_bytes, self.shm_total_bytes)
        return min((found for found in known if found is not None), default=None)

    @property
    def highest_memory_limit_bytes(self) -> int | None:
        """What the memory limit can be raised to; `None` if there is no limit."""
        return self.memory_limit_bytes and self.memory_total_bytes


@dataclass(frozen=True)
class DatasetSummary:
    """The dataset that the trials read. `total_files` is `None` if the folder was not listed completely.

    `root` is the absolute path of the image folder, with links resolved. It is `None` for other data.
    """

    description: str
    files: int | None = None
    classes: int | None = None
    total_files: int | None = None
    bad_files: int | None = None
    bad_images: tuple[str, ...] = ()
    not_measured: Reasons = field(default_factory=dict)
    root: str | None = None


@dataclass(frozen=True)
class PlanSummary:
    """The planned measurements. `collapsed` names each axis that lost values, and why.

    Under `dataset`, `collapsed` says why configurations with incompatible options are left out. `configs` are the
    planned configurations in grid order, including the `baseline`.
    """

    axes: dict[str, list[Scalar]]
    configurations: int
    rounds: int
    trials: int
    configs: tuple[Config, ...]
    baseline: Config
    baseline_why: str
    collapsed: Reasons = field(default_factory=dict)
