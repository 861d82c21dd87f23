"""Shared logic of the two fixes for a memory shortage, which change a setting of the container or host."""

from __future__ import annotations

from dataclasses import dataclass

from loaderbench.diagnosis.shortage import find_shortage
from loaderbench.records import Recommendation, in_bytes
from loaderbench.remedies.findings import Findings

MARGIN = 2
"""Multiple of the size that is known to be too small, or to be needed."""

MIB = 1 << 20

UNTRIED = "Not measured: a trial cannot change a setting of the container or host"


@dataclass(frozen=True)
class RoomRemedy:
    """A fix that triggers when trials of the sweep ran out of shared memory (`shared`) or of memory.

    `title` is formatted with the size to set, and `code` with `mib`, the same size in MiB.
    """

    id: str
    shared: bool
    title: str
    code: str

    def recommend(self, findings: Findings) -> Recommendation | None:
        """Advise twice the size that was needed or available, rounded up to a power of two."""
        found = None if findings.profile else find_shortage(findings.trials)
        compute_bound = findings.diagnosis is not None and findings.diagnosis.verdict.bound == "compute"
        if found is None or found.shared != self.shared or compute_bound:
            return None
        mib = _power_of_two(MARGIN * max(found.most_bytes or 0, found.limit_bytes) / MIB)
        if not self.shared and mib * MIB > (findings.highest_memory_limit_bytes or 0):
            return None
        return Recommendation(
            id=self.id,
            title=self.title.format(in_bytes(mib * MIB)),
            change={},
            basis="heuristic",
            gain=None,
            status="open",
            evidence=(str(found.evidence()),),
            snippet=self.code.format(mib=mib),
            reason=UNTRIED,
        )


def _power_of_two(least: float) -> int:
    size = 1
    while size < least:
        size *= 2
    return size
