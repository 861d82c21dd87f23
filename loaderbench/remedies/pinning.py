"""What pinning and unpinning share: the same configuration with the axis turned over."""

from __future__ import annotations

from dataclasses import dataclass

from loaderbench.records import Recommendation
from loaderbench.remedies.base import Findings, MeasuredChange, not_checked


@dataclass(frozen=True)
class PinningRemedy:
    """Turns `pin_memory` to `pinned` in the baseline, which has it the other way."""

    id: str
    title: str
    pinned: bool
    caveat: str

    def recommend(self, findings: Findings) -> Recommendation | None:
        """Change the pinning alone; without an accelerator there is nothing to be told."""
        if "pin_memory" in findings.collapsed:
            return not_checked(self.id, self.title, findings.collapsed["pin_memory"]) if self.pinned else None
        if "pin_memory" not in findings.axes:
            reason = "it is no axis of this sweep; -P pin_memory=false,true makes it one"
            return not_checked(self.id, self.title, reason) if self.pinned else None
        if findings.baseline.get("pin_memory") == self.pinned or self.pinned not in findings.axes["pin_memory"]:
            return None
        changed = {**findings.baseline, "pin_memory": self.pinned}
        return MeasuredChange(self.id, self.title, changed, caveat=self.caveat).recommend(findings)
