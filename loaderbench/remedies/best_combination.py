"""All changes together. Gains are not additive, so that the combination is what was measured.

Fires where the sweep's best differs from the baseline in more than one way.
"""

from __future__ import annotations

from loaderbench.records import Config, Recommendation, format_scalar
from loaderbench.remedies.base import MeasuredChange, already_ok, not_checked
from loaderbench.remedies.findings import Findings
from loaderbench.remedies.larger_batch import CAVEAT
from loaderbench.remedies.wording import listed
from loaderbench.remedies.workers import with_workers

TITLE = "Use the best configuration of the sweep"
SMALLER_BATCH = "a smaller batch changes convergence: the learning rate usually has to shrink with it"


class _BestCombination:
    id = "best_combination"

    def recommend(self, findings: Findings) -> Recommendation | None:
        """Go from the baseline to the best; a single change has a card of its own."""
        if findings.best is None:
            return not_checked(self.id, TITLE, findings.why_no_best)
        best = findings.best.config
        changed = [axis for axis, value in best.items() if findings.baseline.get(axis) != value]
        if not changed:
            return already_ok(self.id, TITLE, "the baseline is the best, or cannot be told from it and is cheaper")
        if _has_its_own_card(findings.baseline, best, changed):
            return None
        title = _title(changed, best)
        return MeasuredChange(self.id, title, best, caveat=_caveat(findings.baseline, best)).recommend(findings)


def _has_its_own_card(baseline: Config, best: Config, changed: list[str]) -> bool:
    """Whether the one remedy for an axis says the same; none of them lowers the batch size."""
    if "num_workers" in changed:
        return best == with_workers(baseline, best)
    return changed == ["pin_memory"] or (changed == ["batch_size"] and _larger(baseline, best))


def _larger(baseline: Config, best: Config) -> bool:
    before, after = baseline.get("batch_size"), best.get("batch_size")
    return isinstance(before, int) and isinstance(after, int) and after > before


def _caveat(baseline: Config, best: Config) -> str | None:
    if baseline.get("batch_size") == best.get("batch_size"):
        return None
    return CAVEAT if _larger(baseline, best) else SMALLER_BATCH


def _title(changed: list[str], best: Config) -> str:
    if len(changed) == 1:
        return f"Set {changed[0]} to {format_scalar(best[changed[0]])}"
    return f"Change {listed(changed)} together"


REMEDY = _BestCombination()
