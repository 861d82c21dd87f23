"""Checks of the machine for `loaderbench doctor`: what is fine, what slows loading down, and the fix."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from loaderbench import host_memory
from loaderbench.cpu_lists import usable_cores
from loaderbench.environment.cgroups import Limits, memory_left_bytes, process_limit, quota_periods, read_limits
from loaderbench.environment.machine import busy_percent, most_open_files, open_files_limit
from loaderbench.records import in_bytes

GIB = 2**30
SMALL_SHM_BYTES = GIB  # Docker's default is 64 MB, which a few batches of images fill
FEW_FILES = 4096  # each batch in flight from a worker holds file descriptors
FEW_PROCESSES = 512  # 16 workers on 16 CPUs need 272, if a library starts one thread per CPU in each worker
LITTLE_MEMORY_BYTES = 2 * GIB
BUSY_PERCENT = 20.0
_CPU_PERCENT_INTERVAL_S = 0.5


def check_machine(packages: PackageHealth) -> Iterator[Check]:
    """All checks, in display order. `packages` were checked in a separate process."""
    limits = read_limits()
    yield check_cpus(os.cpu_count() or 1, usable_cores(), limits)
    yield check_quota(quota_periods())
    yield check_load(busy_percent(_CPU_PERCENT_INTERVAL_S))
    yield check_memory(host_memory.total_bytes(), host_memory.available_bytes(), limits, memory_left_bytes())
    yield check_shared_memory(_usage(Path("/dev/shm")))
    yield check_open_files(open_files_limit(), most_open_files())
    yield check_processes(process_limit())
    yield from packages.checks()


def check_cpus(online: int, affinity: int, limits: Limits) -> Check:
    """Available CPUs: min(affinity, quota). A loader can use one worker per CPU."""
    allotted = min(float(affinity), limits.cpus or float(affinity))
    parts = [f"{allotted:g} available of {online} online"]
    if affinity < online:
        parts.append(f"affinity mask: {affinity}")
    if limits.cpus is not None:
        parts.append(f"cgroup quota: {limits.cpus:g}")
    if allotted < 2:
        fix = "workers and training loop share one CPU: raise the quota (docker run --cpus) or the affinity (taskset)"
        return Check("CPUs", "warn", ", ".join(parts), fix)
    return Check("CPUs", "ok", ", ".join(parts))


def check_quota(periods: Mapping[str, tuple[int, int]]) -> Check:
    """Whether the CPU quota of a cgroup has throttled this container."""
    if not periods:
        return Check("CPU quota", "ok", "none, or never reached")
    share = max(throttled / passed for passed, throttled in periods.values())
    said = f"throttled in {share:.1%} of periods since the container started"
    if share > 0.05:
        return Check("CPU quota", "warn", said, "use fewer workers, or raise the quota (docker run --cpus)")
    return Check("CPU quota", "ok", said)


def check_load(percent: float | None) -> Check:
    """CPU use of other programs, which widens the interval of every measurement."""
    if percent is None:
        return Check("Load", "warn", "unknown: /proc is hidden", "mount /proc; without it, CPU use is not measured")
    said = f"{percent:.0f}% of the available CPUs in use now"
    if percent > BUSY_PERCENT:
        return Check("Load", "warn", said, "measure on an idle machine, or with more rounds (--rounds 6)")
    return Check("Load", "ok", said)


def check_memory(total: int | None, available: int | None, limits: Limits, left: int | None = None) -> Check:
    """Memory available to workers and the page cache."""
    if total is None or available is None:
        return Check("Memory", "warn", "unknown: not reported by the operating system", "mount /proc")
    said = f"{in_bytes(available)} free of {in_bytes(total)}"
    if limits.memory_bytes is not None:
        said += f"; cgroup limit: {in_bytes(limits.memory_bytes)}"
        said += "" if left is None else f", {in_bytes(left)} of it unused"
    room = min(available, limits.memory_bytes or available, available if left is None else left)
    if room < LITTLE_MEMORY_BYTES:
        return Check("Memory", "warn", said, "use fewer workers (each needs 300 MB or more), or raise the limit")
    return Check("Memory", "ok", said)


def check_shared_memory(usage: tuple[int, int] | None) -> Check:
    """Space in /dev/shm, through which workers send batches. `usage` is (total, free) in bytes."""
    if usage is None:
        return Check("Shared memory", "ok", "no /dev/shm on this system; batches are shared another way")
    total, free = usage
    said = f"{in_bytes(free)} free of {in_bytes(total)} in /dev/shm"
    fix = "docker run --shm-size=8g or --ipc=host; otherwise use fewer workers and a smaller prefetch_factor"
    if total <= SMALL_SHM_BYTES // 8:
        return Check("Shared memory", "bad", said, fix)
    return Check(
        "Shared memory", "warn" if free < SMALL_SHM_BYTES else "ok", said, fix if free < SMALL_SHM_BYTES else ""
    )


def check_open_files(limit: int | None, most: int | None) -> Check:
    """The limit on file descriptors. Each batch in flight holds several. A process may raise it to `most`."""
    if limit is None:
        return Check("Open files", "ok", "no limit on this system")
    said = f"limit: {limit:,} per process"
    if limit >= FEW_FILES:
        return Check("Open files", "ok", said)
    enough = FEW_FILES * 4
    if most is None or most >= enough:
        return Check("Open files", "warn", said, f"ulimit -n {enough}; many workers with deep prefetch need more")
    up_to = f"ulimit -n {most}; only an administrator" if most > limit else "only an administrator"
    fix = f"{up_to} can raise it further: docker run --ulimit nofile={enough}, or nofile in /etc/security/limits.conf"
    return Check("Open files", "warn", f"{said}, hard limit: {most:,}", fix)


def check_processes(limit: int | None) -> Check:
    """The limit on processes and threads.

    Each worker has a few threads, and libraries start one per CPU in each worker.
    """
    if limit is None:
        return Check("Processes", "ok", "no cgroup limit")
    said = f"cgroup limit: {limit:,} processes and threads"
    if limit < FEW_PROCESSES:
        return Check("Processes", "warn", said, f"docker run --pids-limit={FEW_PROCESSES}; otherwise use fewer workers")
    return Check("Processes", "ok", said)


def _usage(folder: Path) -> tuple[int, int] | None:
    try:
        usage = shutil.disk_usage(folder)
    except OSError:
        return None
    return usage.total, usage.free


@dataclass(frozen=True)
class Check:
    """One check: its name, state and finding, and the fix unless the state is `ok`."""

    name: str
    state: Literal["ok", "warn", "bad"]
    said: str
    fix: str = ""


_TIMEOUT_S = 120.0
_REINSTALL = "reinstall a matching pair: uv pip install --reinstall torch torchvision"
_EMULATED = "consumer.kind: auto emulates one"
_OTHER_DRIVER = (
    "update the NVIDIA driver, or install a torch that was built for an older CUDA; until then a GPU is emulated"
)
_CUDA_BUILD = "install a torch that was built for CUDA; until then a GPU is emulated"
_NO_KERNEL = "loaderbench doctor --gpu names the cause; until it is fixed, a GPU is emulated"
_SCRIPT = """
import sys
sys.path[:] = [place for place in sys.path if place]  # a file in this folder can have a module's name
import io, json, warnings
found = {"python": sys.version.split()[0]}
def look(name, what):
    try:
        found[name] = what()
    except BaseException as error:
        found[name] = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:300]}
def torch_():
    import torch
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        available = torch.cuda.is_available()
    kind, platform = "cuda" if available else "", ""
    if torch.version.hip or torch.version.cuda:
        platform = f"ROCm {torch.version.hip}" if torch.version.hip else f"CUDA {torch.version.cuda}"
    if not kind and torch.xpu.is_available():
        kind = "xpu"
    if not kind and torch.backends.mps.is_available():
        kind = "mps"
    kernel = ""
    try:
        if kind:
            float(torch.ones(8, device=kind).sum())
    except Exception as error:
        kernel = f"{type(error).__name__}: {error}".splitlines()[0][:300]
    devices = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    if kind == "xpu":
        devices, platform = [torch.xpu.get_device_name(i) for i in range(torch.xpu.device_count())], "XPU"
    if kind == "mps":
        devices, platform = ["Apple GPU"], "MPS"
    return {"version": torch.__version__, "platform": platform, "available": bool(kind), "kernel": kernel,
            "why": str(said[-1].message).splitlines()[0][:300] if said else "", "devices": devices}
def torchvision_():
    import torch, torchvision
    torchvision.ops.nms(torch.zeros((1, 4)), torch.zeros(1), 0.5)
    return {"version": torchvision.__version__}
def jpeg():
    from PIL import Image
    kept = io.BytesIO()
    Image.new("RGB", (16, 16)).save(kept, "JPEG")
    return kept.getvalue()
def pillow():
    import PIL
    from PIL import Image, features
    Image.open(io.BytesIO(jpeg())).load()
    return {"version": PIL.__version__, "turbo": bool(features.check_feature("libjpeg_turbo")),
            "webp": features.check("webp")}
def decode():
    import torch, torchvision.io
    torchvision.io.decode_jpeg(torch.frombuffer(bytearray(jpeg()), dtype=torch.uint8))
    return {}
def simplejpeg_():
    import simplejpeg
    simplejpeg.decode_jpeg(jpeg())
    return {}
for name, what in (("torch", torch_), ("torchvision", torchvision_), ("pillow", pillow), ("decode_jpeg", decode),
                   ("simplejpeg", simplejpeg_)):
    look(name, what)
print(json.dumps(found))
"""


@dataclass(frozen=True)
class PackageHealth:
    """What each package reported, as a dict. A package that does not work has the key `error`.

    `gpus_of_driver` is the number of GPUs that the driver has, usable by torch or not.
    """

    found: dict[str, Any] = field(default_factory=dict)
    crashed: str = ""
    gpus_of_driver: int = 0

    def checks(self) -> Iterator[Check]:
        """A check for each package, and one for the GPU."""
        if self.crashed:
            yield Check("torch", "bad", f"import crashed: {self.crashed}", _REINSTALL)
            return
        yield self._of("torch", "torch", required=True)
        yield self._of("torchvision", "torchvision", required=True)
        yield self._accelerator()
        yield self._pillow()
        yield self._of("decode_jpeg", "torchvision JPEG decoder", required=False, said="works")
        yield self._optional()

    def _of(self, name: str, shown: str, *, required: bool, said: str = "") -> Check:
        found = self.found.get(name, {"error": "no answer"})
        if "error" in found:
            return Check(shown, "bad" if required else "warn", found["error"], _REINSTALL)
        return Check(shown, "ok", said or str(found.get("version")))

    def _accelerator(self) -> Check:
        torch = self.found.get("torch", {})
        if "error" in torch:
            return Check("GPU", "warn", "unknown: torch does not work", "fix torch first")
        if torch.get("devices") and torch.get("kernel"):
            said = f"{', '.join(torch['devices'])}: no kernel runs on the first: {torch['kernel']}"
            return Check("GPU", "warn", said, _NO_KERNEL)
        if torch.get("devices"):
            return Check("GPU", "ok", f"{', '.join(torch['devices'])} ({torch['platform']})")
        if self.gpus_of_driver:
            why = torch.get("why") or "torch reports no reason"
            why = why if torch.get("platform") else "torch is a CPU build"
            fix = _OTHER_DRIVER if torch.get("platform") else _CUDA_BUILD
            return Check(
                "GPU", "warn", f"torch finds none of the {self.gpus_of_driver} that the driver has: {why}", fix
            )
        if torch.get("platform") and not torch.get("available"):
            return Check("GPU", "ok", f"none: torch was built for {torch['platform']} but found no device; {_EMULATED}")
        return Check("GPU", "ok", f"none: torch is a CPU build; {_EMULATED}")

    def _pillow(self) -> Check:
        found = self.found.get("pillow", {"error": "no answer"})
        if "error" in found:
            return Check("Pillow", "bad", found["error"], "uv pip install --reinstall pillow")
        said = f"{found['version']}, {'with' if found['turbo'] else 'without'} libjpeg-turbo"
        if not found["turbo"]:
            fix = "decodes at half the speed: install the Pillow wheel, which includes libjpeg-turbo"
            return Check("Pillow", "warn", said, fix)
        return Check("Pillow", "ok", said + ("" if found["webp"] else ", no WebP"))

    def _optional(self) -> Check:
        error = self.found.get("simplejpeg", {"error": ""}).get("error")
        if error and "No module named 'simplejpeg'" not in error:
            return Check("simplejpeg", "warn", error, "uv pip install --reinstall simplejpeg")
        said = "works" if error is None else "not installed (optional: uv pip install simplejpeg)"
        return Check("simplejpeg", "ok", said)


def look_at_packages(executable: str = sys.executable) -> PackageHealth:
    """Import and test the packages in a new process. A crash or a timeout is recorded as a result."""
    try:
        completed = subprocess.run(
            [executable, "-c", _SCRIPT], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return PackageHealth(crashed=f"no answer in {_TIMEOUT_S:.0f} s")
    try:
        return PackageHealth(json.loads(completed.stdout.splitlines()[-1]))
    except (IndexError, ValueError):
        last_line = (completed.stderr.strip().splitlines() or [f"exit code {completed.returncode}"])[-1]
        return PackageHealth(crashed=last_line[:300])
