"""The work is kept from CPUs by a quota, or by an affinity mask narrower than the machine."""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="cpu_quota",
    title="Give the loader its CPUs: raise the quota, or widen the affinity of the workers",
    applies=lambda found: found.named(limits="quota"),
    code="""import os

def worker_init_fn(_):
    os.sched_setaffinity(0, range(os.cpu_count()))  # a library pinned the workers to fewer

# of a container: docker run --cpus=4, or resources.limits.cpu of its pod
""",
)
