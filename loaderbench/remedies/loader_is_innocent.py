"""The loader keeps up with training, so a faster loader would change nothing.

Triggers when the verdict is compute-bound. GPU utilization does not matter.

What it does: nothing, because the loader needs no change.

Costs: nothing.

How to confirm: data wait stays below 5% of the step time.
"""

from __future__ import annotations

from loaderbench.diagnosis.thresholds import NOTICED
from loaderbench.diagnosis.wording import wait_in_percent
from loaderbench.records import Recommendation
from loaderbench.remedies.base import already_ok
from loaderbench.remedies.findings import Findings

_TITLE = "Keep the loader{whose}: it is not the bottleneck"
TITLE = _TITLE.format(whose="")


class _LoaderIsInnocent:
    id = "loader_is_innocent"

    def recommend(self, findings: Findings) -> Recommendation | None:
        """Report that the loader is not the bottleneck if the verdict is `compute`."""
        found = findings.diagnosis
        if found is None or found.verdict.bound != "compute":
            return None
        best = findings.best.config if findings.best else findings.baseline
        whose = "" if findings.profile or best == findings.baseline else " of the best config"
        share = found.facts.wait_share
        wait = wait_in_percent(share) if share < NOTICED <= round(share, 3) else f"{share * 100:.1f}%"
        reason = f"A faster loader{whose} saves at most the data wait: {wait} of step time"
        return already_ok(self.id, _TITLE.format(whose=whose), reason)


REMEDY = _LoaderIsInnocent()
