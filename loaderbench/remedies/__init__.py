"""What to change, one file per fix: first what the sweep measured, then what the diagnosed cause suggests."""

from __future__ import annotations

from importlib import import_module

from loaderbench.records import Candidate, Recommendation
from loaderbench.remedies.base import Remedy
from loaderbench.remedies.by_cause import CauseRemedy, MeasuredFirst
from loaderbench.remedies.findings import Diagnosis, Findings
from loaderbench.remedies.pixels import with_pixel_cost
from loaderbench.remedies.target import with_target
from loaderbench.remedies.verified import COMBINATION, with_start_caveat, with_trials

__all__ = ["REMEDIES", "Diagnosis", "Findings", "Remedy", "candidates_for", "recommend"]

IDS = (
    "best_combination",
    "main_process_loading",
    "more_workers",
    "fewer_workers",
    "larger_batch",
    "pin_memory",
    "unpin_memory",
    "cpu_quota",
    "larger_shared_memory",
    "larger_memory_limit",
    "library_threads",
    "persistent_workers",
    "larger_epochs",
    "out_of_order",
    "deeper_prefetch",
    "slow_samples",
    "even_shards",
    "workers_beyond_cores",
    "cold_cache",
    "pack_small_files",
    "process_loader",
    "release_lock",
    "move_into_workers",
    "no_workers_for_tiny_samples",
    "uint8_transport",
    "thread_loader",
    "page_faults",
    "jpeg_draft",
    "faster_decoder",
    "scaled_decode",
    "region_decode",
    "transforms_v2_uint8",
    "presize_offline",
    "memory_cache",
    "gpu_decode",
    "gpu_decode_dali",
    "dali_loader",
    "cheaper_collate",
    "cheaper_read",
    "cheaper_sample",
    "fewer_copies",
    "mixed_precision",
    "loader_is_innocent",
    "duplicate_augmentation",
    "copy_on_read",
    "sharded_list",
)
"""The file of each fix, in the order of the report."""

REMEDIES: tuple[Remedy, ...] = tuple(import_module(f"loaderbench.remedies.{name}").REMEDY for name in IDS)

WHOLE = (COMBINATION, "best_combination")
"""All changes together: they come first."""

OF_SWEEPS = ("best_combination", "larger_batch")
"""Those that compare configurations of a sweep and depend on no cause."""


def recommend(findings: Findings) -> tuple[Recommendation, ...]:
    """Ask every fix; those to apply come first, then those already in place, then those not checked.

    Measured ones come before others, all changes together before each alone, larger gains before smaller ones. A
    profile has one configuration, so fixes that compare configurations are not asked.
    """
    asked = [remedy for remedy in REMEDIES if not findings.profile or remedy.id not in OF_SWEEPS]
    found = [answer for remedy in asked if (answer := remedy.recommend(findings)) is not None]
    tried = with_trials(found, findings)
    complete = (with_target(with_pixel_cost(with_start_caveat(advice, findings)), findings) for advice in tried)
    return tuple(sorted(complete, key=_place))


def candidates_for(diagnosis: Diagnosis) -> tuple[Candidate, ...]:
    """The fixes that the cause calls for and a trial can measure."""
    asked = [remedy for remedy in REMEDIES if isinstance(remedy, CauseRemedy | MeasuredFirst)]
    return tuple(found for remedy in asked if (found := remedy.candidate(diagnosis)) is not None)


def _place(advice: Recommendation) -> tuple[int, bool, bool, float]:
    """Sort key: what helps most comes first."""
    order = {"open": 0, "already_ok": 1, "not_checked": 2}
    gain = -advice.gain.est if advice.gain and advice.basis == "measured" and advice.status == "open" else 0.0
    return order[advice.status], advice.basis == "heuristic", advice.id not in WHOLE, gain
