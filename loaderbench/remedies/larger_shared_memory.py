"""Batches of the workers do not fit in `/dev/shm`.

Triggers when trials of the sweep failed because shared memory was full. Docker's default is 64 MiB.

What it does: gives the container room for all batches in flight.

Costs: only the memory that is used.

How to confirm: `loaderbench doctor` lists the size of `/dev/shm`; run again, and the failed configs complete.
"""

from loaderbench.remedies.room import RoomRemedy

REMEDY = RoomRemedy(
    id="larger_shared_memory",
    shared=True,
    title="Raise the size of /dev/shm to {}",
    code="""# Docker:      docker run --shm-size={mib}m ...
# Compose:     shm_size: {mib}m
# Kubernetes:  a volume mounted at /dev/shm: emptyDir: {{medium: Memory, sizeLimit: {mib}Mi}}
# host:        mount -o remount,size={mib}m /dev/shm
""",
)
