"""What to change, one file per remedy. What the sweep measured stands first; then what the diagnosed cause advises.

`REMEDIES` is the order in which the page shows them.
"""

from __future__ import annotations

from loaderbench.records import Candidate, Recommendation
from loaderbench.remedies import (
    best_combination,
    cheaper_collate,
    cheaper_read,
    cheaper_sample,
    cold_cache,
    copy_on_read,
    cpu_quota,
    deeper_prefetch,
    duplicate_augmentation,
    faster_decoder,
    fewer_copies,
    fewer_workers,
    gpu_decode,
    jpeg_draft,
    larger_batch,
    larger_epochs,
    library_threads,
    loader_is_innocent,
    main_process_loading,
    memory_cache,
    mixed_precision,
    more_workers,
    move_into_workers,
    no_workers_for_tiny_samples,
    out_of_order,
    pack_small_files,
    page_faults,
    persistent_workers,
    pin_memory,
    presize_offline,
    release_lock,
    scaled_decode,
    slow_samples,
    transforms_v2_uint8,
    uint8_transport,
    unpin_memory,
    workers_beyond_cores,
)
from loaderbench.remedies.base import Remedy
from loaderbench.remedies.by_cause import CauseRemedy, MeasuredFirst
from loaderbench.remedies.findings import Diagnosis, Findings
from loaderbench.remedies.short_epochs import with_start_told
from loaderbench.remedies.verified import COMBINATION, with_trials

__all__ = ["REMEDIES", "Diagnosis", "Findings", "Remedy", "candidates_for", "recommend"]

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
    deeper_prefetch.REMEDY,
    slow_samples.REMEDY,
    workers_beyond_cores.REMEDY,
    cold_cache.REMEDY,
    pack_small_files.REMEDY,
    release_lock.REMEDY,
    move_into_workers.REMEDY,
    no_workers_for_tiny_samples.REMEDY,
    uint8_transport.REMEDY,
    page_faults.REMEDY,
    jpeg_draft.REMEDY,
    faster_decoder.REMEDY,
    scaled_decode.REMEDY,
    transforms_v2_uint8.REMEDY,
    presize_offline.REMEDY,
    memory_cache.REMEDY,
    gpu_decode.REMEDY,
    cheaper_collate.REMEDY,
    cheaper_read.REMEDY,
    cheaper_sample.REMEDY,
    fewer_copies.REMEDY,
    mixed_precision.REMEDY,
    loader_is_innocent.REMEDY,
    duplicate_augmentation.REMEDY,
    copy_on_read.REMEDY,
)

WHOLE = (COMBINATION, best_combination.REMEDY.id)
"""All changes together: they stand first."""

OF_SWEEPS: tuple[Remedy, ...] = (best_combination.REMEDY, larger_batch.REMEDY, pin_memory.REMEDY, unpin_memory.REMEDY)
"""Those that compare configurations of a sweep, and know nothing of a cause."""


def recommend(findings: Findings) -> tuple[Recommendation, ...]:
    """Ask every remedy; what applies stands first, then what is fine already, then what could not be checked.

    What was measured stands before what was not, all changes together before each alone, larger gains before smaller
    ones. Of a profile only those are asked that need no other configuration to compare with.
    """
    asked = [remedy for remedy in REMEDIES if not findings.profile or remedy not in OF_SWEEPS]
    found = [answer for remedy in asked if (answer := remedy.recommend(findings)) is not None]
    tried = with_trials(found, findings)
    return tuple(sorted((with_start_told(told, findings) for told in tried), key=_place))


def candidates_for(diagnosis: Diagnosis) -> tuple[Candidate, ...]:
    """The remedies that the cause calls for and a trial can show."""
    asked = [remedy for remedy in REMEDIES if isinstance(remedy, CauseRemedy | MeasuredFirst)]
    return tuple(found for remedy in asked if (found := remedy.candidate(diagnosis)) is not None)


def _place(told: Recommendation) -> tuple[int, bool, bool, float]:
    """What helps most stands first."""
    standing = {"open": 0, "already_ok": 1, "not_checked": 2}
    gain = -told.gain.est if told.gain and told.basis == "measured" and told.status == "open" else 0.0
    return standing[told.status], told.basis == "heuristic", told.id not in WHOLE, gain
