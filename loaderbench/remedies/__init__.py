"""The catalog of fixes, one module each: fixes that the sweep measured first, then fixes for the diagnosed cause."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

from loaderbench.records import Candidate, Recommendation
from loaderbench.remedies.base import Remedy
from loaderbench.remedies.by_cause import CauseRemedy, MeasuredFirst
from loaderbench.remedies.findings import Diagnosis, Findings
from loaderbench.remedies.streams import with_stream_caveat
from loaderbench.remedies.verified import COMBINATION, with_start_caveat, with_target, with_trials
from loaderbench.remedies.wording import with_pixel_cost

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
    "faster_loop",
    "between_epochs",
    "background_thread",
    "feeding_process",
    "library_threads",
    "chunked_sampler",
    "larger_epochs",
    "out_of_order",
    "deeper_prefetch",
    "slow_samples",
    "even_shards",
    "share_workers",
    "workers_beyond_cores",
    "cold_cache",
    "pack_small_files",
    "process_loader",
    "release_lock",
    "move_into_workers",
    "no_workers_for_tiny_samples",
    "uint8_transport",
    "thread_loader",
    "mapped_dataset",
    "uncached_images",
    "shallower_prefetch",
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
    "persistent_workers",
    "duplicate_augmentation",
    "copy_on_read",
    "sharded_list",
)
"""The module of each fix, in report order."""

REMEDIES: tuple[Remedy, ...] = tuple(import_module(f"loaderbench.remedies.{name}").REMEDY for name in IDS)

WHOLE = (COMBINATION, "best_combination")
"""Fixes that combine all changes; the report lists them first."""

OF_DATASETS = ("duplicate_augmentation", "copy_on_read", "sharded_list")
"""Fixes for what a dataset does wrong, with any bottleneck; the report lists them last."""

OF_SWEEPS = ("best_combination", "larger_batch")
"""Fixes that compare configurations of a sweep and do not depend on a cause."""


def recommend(findings: Findings) -> tuple[Recommendation, ...]:
    """Collect the recommendations of all fixes, sorted by status: open, already in place, not checked.

    Measured recommendations come before heuristic ones, combinations before single changes, and larger gains before
    smaller ones. Heuristic ones for the bottleneck come before those that relieve other stages. A profile has a single
    configuration, so fixes that compare configurations are skipped.
    """
    asked = [remedy for remedy in REMEDIES if not findings.profile or remedy.id not in OF_SWEEPS]
    asked.sort(key=lambda remedy: (remedy.id in OF_DATASETS, _relieves_others(remedy, findings.diagnosis)))
    found = [answer for remedy in asked if (answer := remedy.recommend(findings)) is not None]
    tried = with_trials(found, findings)
    warned = (with_stream_caveat(with_start_caveat(advice, findings), findings) for advice in tried)
    complete = (_with_reason(with_target(with_pixel_cost(advice), findings)) for advice in warned)
    return tuple(sorted(complete, key=_place))


def _with_reason(advice: Recommendation) -> Recommendation:
    """The recommendation, with the reason why its gain, and what it is based on, are unknown, if they are."""
    why = advice.reason or "no trial measured this fix"
    missing = [name for name in ("basis", "gain") if getattr(advice, name) is None]
    return replace(advice, not_measured=dict.fromkeys(missing, why))


def _relieves_others(remedy: Remedy, found: Diagnosis | None) -> bool:
    """Whether a fix relieves other stages than the bottleneck, if that is a stage."""
    stages = remedy.relieves if isinstance(remedy, CauseRemedy) else {}
    return bool(stages) and found is not None and bool(found.verdict.stage) and found.verdict.stage not in stages


def candidates_for(diagnosis: Diagnosis) -> tuple[Candidate, ...]:
    """Return the fixes that the cause calls for and a trial can measure."""
    asked = [remedy for remedy in REMEDIES if isinstance(remedy, CauseRemedy | MeasuredFirst)]
    return tuple(found for remedy in asked if (found := remedy.candidate(diagnosis)) is not None)


def _place(advice: Recommendation) -> tuple[int, bool, bool, float]:
    """Sort key that puts the most useful recommendation first."""
    order = {"open": 0, "already_ok": 1, "not_checked": 2}
    gain = -advice.gain.est if advice.gain and advice.basis == "measured" and advice.status == "open" else 0.0
    return order[advice.status], advice.basis == "heuristic", advice.id not in WHOLE, gain
