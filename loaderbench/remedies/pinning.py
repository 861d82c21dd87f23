"""Shared logic of `pin_memory` and `unpin_memory`: the same configuration with the other value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from loaderbench.records import Recommendation, Scalar
from loaderbench.remedies.base import MeasuredChange, already_ok, not_checked
from loaderbench.remedies.by_cause import CauseRemedy, MeasuredFirst
from loaderbench.remedies.findings import Diagnosis, Findings

NO_GPU = "Not checked: pin_memory has no effect without a GPU"
NOT_SWEPT = "Not checked: one value swept; add -P pin_memory=false,true"


def pinning_remedy(id_: str, *, pinned: bool, applies: Callable[[Diagnosis], bool], caveat: str) -> MeasuredFirst:
    """A fix that sets `pin_memory`: measured by the sweep, else tried if the cause `applies` and it is not set yet."""
    title = f"Set pin_memory={pinned}"
    return MeasuredFirst(
        PinningRemedy(id=id_, title=title, pinned=pinned, caveat=caveat),
        CauseRemedy(
            id=id_,
            title=title,
            applies=lambda found: bool(found.config.get("pin_memory")) is not pinned and applies(found),
            change=lambda _: {"pin_memory": pinned},
            effort=0,
            caveat=caveat,
        ),
    )


@dataclass(frozen=True)
class PinningRemedy:
    """Set `pin_memory` to `pinned` if the baseline has the other value."""

    id: str
    title: str
    pinned: bool
    caveat: str

    def recommend(self, findings: Findings) -> Recommendation | None:
        """Recommend changing only `pin_memory`, which has no effect without a GPU."""
        if not findings.accelerator:
            return not_checked(self.id, self.title, NO_GPU) if self.pinned else None
        values = findings.values("pin_memory")
        if len(values) < 2:
            return self._not_swept(values[0] if values else findings.loader.get("pin_memory")) if self.pinned else None
        if findings.baseline.get("pin_memory") == self.pinned:
            return None
        changed = {**findings.baseline, "pin_memory": self.pinned}
        return MeasuredChange(self.id, self.title, changed, caveat=self.caveat).recommend(findings)

    def _not_swept(self, fixed: Scalar) -> Recommendation:
        if fixed is True:
            return already_ok(self.id, self.title, "pin_memory=True is already set")
        return not_checked(self.id, self.title, NOT_SWEPT)
