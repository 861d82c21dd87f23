"""Gains do not add up, so the sweep measures the combination itself.

Triggers when the best config of the sweep differs from the baseline in more than one argument.

What it does: sets all arguments of the best config at once.

Costs: workers, memory and CPU use of all changes, as measured.

How to confirm: the report lists both configs with their intervals, measured in the same rounds.
"""

from __future__ import annotations

from loaderbench.loaders import AXIS, backend_of
from loaderbench.records import Config, Recommendation
from loaderbench.remedies.base import MeasuredChange, already_ok, not_checked
from loaderbench.remedies.findings import Findings
from loaderbench.remedies.larger_batch import caveat_of_batch, is_larger
from loaderbench.remedies.wording import applied, argument
from loaderbench.remedies.workers import swept_count_axis, with_workers

TITLE = "Use the best config of the sweep"


class _BestCombination:
    id = "best_combination"

    def recommend(self, findings: Findings) -> Recommendation | None:
        """Recommend the best configuration, unless the fix for a single argument already does."""
        if findings.best is None:
            return not_checked(self.id, TITLE, findings.why_no_best)
        best = findings.best.config
        taken = {*backend_of(best).axes, AXIS}  # axes of other loaders are None in the best configuration
        changed = [
            axis
            for axis, value in best.items()
            if findings.baseline.get(axis) != value and (value is not None or axis in taken)
        ]
        if not changed:
            return already_ok(self.id, TITLE, "The baseline is the best config, or tied with it and cheaper")
        if _has_its_own_fix(findings, best, changed):
            return None
        title = _title(changed, best)
        data = findings.altered_data({axis: best[axis] for axis in changed})
        of_data = f"{' and '.join(data)} changes which data is loaded" if data else None
        caveat = ". ".join(filter(None, (caveat_of_batch(findings.baseline, best), of_data))) or None
        return MeasuredChange(self.id, title, best, caveat=caveat).recommend(findings)


def _has_its_own_fix(findings: Findings, best: Config, changed: list[str]) -> bool:
    """Whether the fix for a single argument recommends the same change. No fix lowers the batch size."""
    baseline, axis = findings.baseline, swept_count_axis(findings)
    if axis in changed:
        return best == with_workers(baseline, best, axis)
    return changed == ["pin_memory"] or (changed == ["batch_size"] and is_larger(baseline, best))


def _title(changed: list[str], best: Config) -> str:
    if len(changed) == 1:
        return f"Set {argument(changed[0], best[changed[0]])}"
    return applied([argument(axis, best[axis]) for axis in changed])


REMEDY = _BestCombination()
