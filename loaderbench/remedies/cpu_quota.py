"""The work is kept from CPUs by a quota, or by an affinity mask narrower than the machine.

Fires where a container's quota is used up, or workers may run on fewer CPUs than their parent. A mask is undone in a
trial; a quota is not ours to raise.
"""

from __future__ import annotations

from loaderbench.records import Config
from loaderbench.remedies.by_cause import CauseRemedy
from loaderbench.remedies.findings import Diagnosis


def _change(found: Diagnosis) -> Config:
    loads = found.facts.loads
    narrowed = loads is not None and loads.allowed_cpus is not None and loads.allowed_cpus < found.facts.cpus
    return {"worker_affinity": "all"} if narrowed else {}


REMEDY = CauseRemedy(
    id="cpu_quota",
    title="Give the loader its CPUs: raise the quota, or widen the affinity of the workers",
    applies=lambda found: found.named(limits={"quota"}),
    change=_change,
    code="""import os

def worker_init_fn(_):
    os.sched_setaffinity(0, range(os.cpu_count()))  # a library pinned the workers to fewer

# of a container: docker run --cpus=4, or resources.limits.cpu of its pod
""",
)
