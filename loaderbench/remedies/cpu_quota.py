"""A CPU quota or a narrow affinity mask keeps the loader off CPUs.

Triggers when a container's quota is used up, or workers may run on fewer CPUs than their parent.

What it does: lets workers use more CPUs. A trial can widen a mask of workers, but cannot raise a quota.

How to confirm: `loaderbench doctor` lists the available CPUs; workers wait for a CPU less often.
"""

from __future__ import annotations

from loaderbench.diagnosis.limits import is_throttled
from loaderbench.records import Config
from loaderbench.remedies.by_cause import CauseRemedy
from loaderbench.remedies.findings import Diagnosis


def _is_narrowed(found: Diagnosis) -> bool:
    """Whether the affinity mask is the limit. If a quota is used up, a wider mask would only use it up faster."""
    loads = found.facts.loads
    if is_throttled(found.facts) or loads is None or loads.allowed_cpus is None:
        return False
    return loads.allowed_cpus < found.facts.cpus


def _change(found: Diagnosis) -> Config:
    return {"worker_affinity": "all"} if _is_narrowed(found) else {}


def _title(found: Diagnosis) -> str:
    if _is_narrowed(found):
        return "Widen the affinity of the workers to all CPUs"
    return "Raise the CPU quota" if is_throttled(found.facts) else "Widen the CPU affinity of this process"


_QUOTA = """# Docker:     docker run --cpus=4 ...
# Kubernetes: resources.limits.cpu: 4
"""
_MASK = """# Docker: docker run --cpuset-cpus=0-3 ...
# Slurm:  #SBATCH --cpus-per-task=4
# Linux:  taskset -c 0-3 python train.py
"""

REMEDY = CauseRemedy(
    id="cpu_quota",
    title="Raise the CPU quota or widen the workers' affinity",
    applies=lambda found: found.named(limits={"quota"}),
    change=_change,
    title_for=_title,
    code=_QUOTA + _MASK,
    code_for=lambda found: _QUOTA if is_throttled(found.facts) else _MASK,
)
