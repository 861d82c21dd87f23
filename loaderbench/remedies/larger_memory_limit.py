"""Trials were killed for lack of memory, or could not allocate it.

Triggers when trials of the sweep ran out of memory under the limit of a container or a job, and the machine has more.

What it does: raises the limit, so more workers and larger batches fit.

Costs: only the memory that is used.

How to confirm: `loaderbench doctor` lists the memory limit; run again, and the failed configs complete.
"""

from loaderbench.remedies.room import RoomRemedy

REMEDY = RoomRemedy(
    id="larger_memory_limit",
    shared=False,
    title="Raise the memory limit to {}",
    code="""# Docker:      docker run --memory={mib}m ...
# Kubernetes:  resources.limits.memory: {mib}Mi
# Slurm:       #SBATCH --mem={mib}M
""",
)
