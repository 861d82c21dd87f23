"""The loader keeps up with training, so a faster loader would change nothing.

Triggers when the verdict is compute-bound, at any GPU utilization.

What it does: nothing; it says that the loader needs no change.

Costs: nothing.

How to confirm: data wait stays below 5% of the step time.
"""

from __future__ import annotations

from loaderbench.records import Recommendation
from loaderbench.remedies.base import already_ok
from loaderbench.remedies.findings import Findings

TITLE = "Keep the loader: it is not the bottleneck"


class _LoaderIsInnocent:
    id = "loader_is_innocent"

    def recommend(self, findings: Findings) -> Recommendation | None:
        """Say so where the verdict is `compute`."""
        found = findings.diagnosis
        if found is None or found.verdict.bound != "compute":
            return None
        share = found.facts.wait_share * 100
        return already_ok(self.id, TITLE, f"No gain possible: data wait is {share:.1f}% of the step time")


REMEDY = _LoaderIsInnocent()
