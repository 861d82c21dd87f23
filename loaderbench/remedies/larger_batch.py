"""A larger batch spreads the fixed cost of a step over more samples.

Fires where the sweep's best has a larger batch than the baseline; measured by the sweep.
"""

from __future__ import annotations

from loaderbench.records import Recommendation
from loaderbench.remedies.base import MeasuredChange, already_ok, not_checked
from loaderbench.remedies.findings import Findings

TITLE = "Raise batch_size to {}"
CAVEAT = "a larger batch changes convergence: the learning rate usually has to grow with it (Goyal et al. 2017)"
_ONE_VALUE = "batch_size has one value in this sweep; -P batch_size={},{},{} makes it an axis"


class _LargerBatch:
    id = "larger_batch"

    def recommend(self, findings: Findings) -> Recommendation | None:
        """Change the batch size alone, to the best configuration's."""
        now = findings.baseline.get("batch_size")
        if not isinstance(now, int):
            return None
        if len(findings.values("batch_size")) == 1:
            return not_checked(self.id, "Raise batch_size", _ONE_VALUE.format(now, 2 * now, 4 * now))
        if findings.best is None:
            return not_checked(self.id, "Raise batch_size", findings.why_no_best)
        best = findings.best.config["batch_size"]
        if not isinstance(best, int) or best <= now:
            has = f"batch_size={now} too" if best == now else "a smaller batch"
            return already_ok(self.id, "Raise batch_size", f"the best configuration has {has}")
        return MeasuredChange(
            self.id, TITLE.format(best), {**findings.baseline, "batch_size": best}, caveat=CAVEAT
        ).recommend(findings)  # fmt: skip


REMEDY = _LargerBatch()
