"""What pinning and unpinning share: the same configuration with the axis turned over."""

from __future__ import annotations

from dataclasses import dataclass

from loaderbench.records import Recommendation, Scalar
from loaderbench.remedies.base import MeasuredChange, already_ok, not_checked
from loaderbench.remedies.findings import Findings

NO_ACCELERATOR = "there is no accelerator, so that pinning memory does nothing"
NOT_SWEPT = "it is no axis of this sweep; -P pin_memory=false,true makes it one"


@dataclass(frozen=True)
class PinningRemedy:
    """Turns `pin_memory` to `pinned` in the baseline, which has it the other way."""

    id: str
    title: str
    pinned: bool
    caveat: str

    def recommend(self, findings: Findings) -> Recommendation | None:
        """Change the pinning alone; without an accelerator pinning does nothing."""
        if not findings.accelerator:
            return not_checked(self.id, self.title, NO_ACCELERATOR) if self.pinned else None
        values = findings.values("pin_memory")
        if len(values) < 2:
            return self._not_swept(values[0] if values else findings.loader.get("pin_memory")) if self.pinned else None
        if findings.baseline.get("pin_memory") == self.pinned:
            return None
        changed = {**findings.baseline, "pin_memory": self.pinned}
        return MeasuredChange(self.id, self.title, changed, caveat=self.caveat).recommend(findings)

    def _not_swept(self, fixed: Scalar) -> Recommendation:
        if fixed is True:
            return already_ok(self.id, self.title, "the suite sets it")
        return not_checked(self.id, self.title, NOT_SWEPT)
