"""What the three remedies for the worker count share: the best count of the sweep against the baseline's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from loaderbench.records import Recommendation
from loaderbench.remedies.base import Findings, MeasuredChange, already_ok, not_checked


@dataclass(frozen=True)
class WorkerRemedy:
    """Fires when the step from the baseline's count to the best one is of its kind."""

    id: str
    title: str
    fits: Callable[[int, int], bool]
    about: Callable[[int], bool]
    fine: str

    def recommend(self, findings: Findings) -> Recommendation | None:
        """Change the worker count alone, to the best configuration's."""
        now = findings.baseline.get("num_workers")
        if not isinstance(now, int) or not self.about(now):
            return None
        if findings.best is None:
            return not_checked(self.id, self.title.format("?"), findings.why_no_best)
        best = findings.best.config["num_workers"]
        if not isinstance(best, int) or not self.fits(now, best):
            return already_ok(self.id, self.title.format("?").replace(" to ?", ""), self.fine.format(now))
        return MeasuredChange(
            self.id, self.title.format(best), {**findings.baseline, "num_workers": best}
        ).recommend(findings)  # fmt: skip
