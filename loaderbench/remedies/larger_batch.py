"""A larger batch spreads the fixed cost of a step over more samples.

Triggers when the best config of the sweep has a larger batch than the baseline.

What it does: raises `batch_size`, measured by the sweep.

Costs: memory for larger batches, as measured.

How to confirm: throughput rises; check that the loss converges as before.
"""

from __future__ import annotations

from loaderbench.records import Config, Recommendation
from loaderbench.remedies.base import MeasuredChange, already_ok, not_checked
from loaderbench.remedies.findings import Findings

TITLE = "Set batch_size={}"
GENERAL = "Raise batch_size"
CAVEAT = "A larger batch changes convergence: scale the learning rate with it (Goyal et al. 2017)"
SMALLER = "A smaller batch changes convergence: scale the learning rate with it"
_ONE_VALUE = "Not checked: one value swept; add -P batch_size={},{},{}"


def is_larger(baseline: Config, best: Config) -> bool:
    """Whether the best configuration has a larger batch than the baseline."""
    before, after = baseline.get("batch_size"), best.get("batch_size")
    return isinstance(before, int) and isinstance(after, int) and after > before


def caveat_of_batch(baseline: Config, best: Config) -> str | None:
    """The caveat about convergence if the batch size changes; `None` if the batch size stays the same."""
    if baseline.get("batch_size") == best.get("batch_size"):
        return None
    return CAVEAT if is_larger(baseline, best) else SMALLER


class _LargerBatch:
    id = "larger_batch"

    def recommend(self, findings: Findings) -> Recommendation | None:
        """Recommend changing only the batch size, to that of the best configuration."""
        now = findings.baseline.get("batch_size")
        if not isinstance(now, int):
            return None
        if len(findings.values("batch_size")) == 1:
            return not_checked(self.id, GENERAL, _ONE_VALUE.format(now, 2 * now, 4 * now))
        if findings.best is None:
            return not_checked(self.id, GENERAL, findings.why_no_best)
        best = findings.best.config["batch_size"]
        if not isinstance(best, int) or best <= now:
            fine = f"batch_size={now} is already set" if best == now else f"Best config has a smaller batch: {best}"
            return already_ok(self.id, GENERAL, fine)
        return MeasuredChange(
            self.id, TITLE.format(best), {**findings.baseline, "batch_size": best}, caveat=CAVEAT
        ).recommend(findings)  # fmt: skip


REMEDY = _LargerBatch()
