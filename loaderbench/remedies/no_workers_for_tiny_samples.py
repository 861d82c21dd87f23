"""Sending a sample from a worker costs more than loading it.

Triggers when worker-to-main IPC takes longer than loading the batch.

What it does: loads in the main process, without IPC.

How to confirm: throughput rises with `num_workers=0`.
"""

from loaderbench.remedies.by_cause import CauseRemedy

REMEDY = CauseRemedy(
    id="no_workers_for_tiny_samples",
    title="Set num_workers=0",
    effort=0,
    applies=lambda found: found.named(stages={"transport"}) and found.facts.tiny_batches,
    change=lambda _: {"num_workers": 0},
)
