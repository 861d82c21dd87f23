"""What to change, one file per remedy. What the sweep measured stands first; then what the diagnosed cause advises.

`REMEDIES` is the order in which the page shows them.
"""

from __future__ import annotations

from loaderbench.records import Recommendation
from loaderbench.remedies import (
    best_combination,
    cheaper_collate,
    cheaper_read,
    cheaper_sample,
    cold_cache,
    cpu_quota,
    faster_decoder,
    fewer_copies,
    fewer_workers,
    jpeg_draft,
    larger_batch,
    larger_epochs,
    library_threads,
    main_process_loading,
    more_workers,
    move_into_workers,
    no_workers_for_tiny_samples,
    out_of_order,
    page_faults,
    persistent_workers,
    pin_memory,
    release_lock,
    slow_samples,
    transforms_v2_uint8,
    uint8_transport,
    unpin_memory,
    workers_beyond_cores,
)
from loaderbench.remedies.base import Findings, Remedy
from loaderbench.remedies.by_cause import CauseRemedy, Diagnosis, MeasuredFirst

__all__ = ["REMEDIES", "Diagnosis", "Findings", "Remedy", "recommend"]

REMEDIES: tuple[Remedy, ...] = (
    best_combination.REMEDY,
    main_process_loading.REMEDY,
    more_workers.REMEDY,
    fewer_workers.REMEDY,
    larger_batch.REMEDY,
    pin_memory.REMEDY,
    unpin_memory.REMEDY,
    cpu_quota.REMEDY,
    library_threads.REMEDY,
    persistent_workers.REMEDY,
    larger_epochs.REMEDY,
    out_of_order.REMEDY,
    slow_samples.REMEDY,
    workers_beyond_cores.REMEDY,
    cold_cache.REMEDY,
    release_lock.REMEDY,
    move_into_workers.REMEDY,
    no_workers_for_tiny_samples.REMEDY,
    uint8_transport.REMEDY,
    page_faults.REMEDY,
    jpeg_draft.REMEDY,
    faster_decoder.REMEDY,
    transforms_v2_uint8.REMEDY,
    cheaper_collate.REMEDY,
    cheaper_read.REMEDY,
    cheaper_sample.REMEDY,
    fewer_copies.REMEDY,
)


def recommend(findings: Findings) -> tuple[Recommendation, ...]:
    """Ask every remedy; what applies stands first, then what is fine already, then what could not be checked.

    Of a profile only those are asked that need no other configuration to compare with.
    """
    standing = {"open": 0, "already_ok": 1, "not_checked": 2}
    asked = [remedy for remedy in REMEDIES if not findings.profile or isinstance(remedy, CauseRemedy | MeasuredFirst)]
    found = [answer for remedy in asked if (answer := remedy.recommend(findings)) is not None]
    return tuple(sorted(found, key=lambda answer: (standing[answer.status], answer.basis == "heuristic")))
