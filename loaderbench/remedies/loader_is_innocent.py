"""The loader keeps up: another one would change nothing.

Fires where the consumer hardly waits for data, whatever the utilisation of a device says.
"""

from __future__ import annotations

from loaderbench.records import Recommendation
from loaderbench.remedies.base import already_ok
from loaderbench.remedies.findings import Findings

TITLE = "Change to another loader"


class _LoaderIsInnocent:
    id = "loader_is_innocent"

    def recommend(self, findings: Findings) -> Recommendation | None:
        """Say so where the verdict is `compute`."""
        found = findings.diagnosis
        if found is None or found.verdict.bound != "compute":
            return None
        share = found.facts.wait_share * 100
        return already_ok(self.id, TITLE, f"the consumer waits for data {share:.1f}% of its time: nothing is to be won")


REMEDY = _LoaderIsInnocent()
