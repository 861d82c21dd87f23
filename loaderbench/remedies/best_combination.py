"""All changes together. Gains are not additive, so that the combination is what was measured."""

from __future__ import annotations

from loaderbench.records import Recommendation
from loaderbench.remedies.base import Findings, MeasuredChange, already_ok, not_checked
from loaderbench.remedies.larger_batch import CAVEAT

TITLE = "Use the best configuration of the sweep"


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
        if len(changed) == 1 and changed[0] in ("num_workers", "batch_size", "pin_memory"):
            return None
        caveat = CAVEAT if "batch_size" in changed else None
        return MeasuredChange(self.id, f"Change {_listed(changed)} together", best, caveat=caveat).recommend(findings)


def _listed(axes: list[str]) -> str:
    return axes[0] if len(axes) == 1 else f"{', '.join(axes[:-1])} and {axes[-1]}"


REMEDY = _BestCombination()
