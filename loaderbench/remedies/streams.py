"""Advice specific to an `IterableDataset`, which cannot be shuffled and must divide its samples among workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from loaderbench.records import Measured, Recommendation
from loaderbench.remedies.findings import Findings


def loader_arguments(measured: Measured) -> dict[str, Any]:
    """The fixed arguments, without `shuffle` for a stream because its `DataLoader` rejects it."""
    traits: Mapping[str, str] = next((one.dataset_traits for one in measured.sweep if one.dataset_traits), {})
    left_out = {"shuffle"} if "stream" in traits else set()
    return {name: value for name, value in measured.loader.items() if name not in left_out}


def with_stream_caveat(advice: Recommendation, findings: Findings) -> Recommendation:
    """The recommendation, with a caveat if each of several workers would yield every sample."""
    stream = findings.diagnosis.traits.get("undivided") if findings.diagnosis else None
    count = advice.change.get("num_workers")
    if stream is None or advice.status != "open" or not isinstance(count, int) or count < 2:
        return advice
    caveat = f"First divide {stream} among workers (get_worker_info), or each may yield every sample"
    return replace(advice, caveat=". ".join(filter(None, (advice.caveat, caveat))))
