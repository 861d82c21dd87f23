"""What pinning and unpinning share: the same configuration with the other value of `pin_memory`."""

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
    """What the sweep measured of the other value; else its trial, where a cause `applies` and it is not set yet."""
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
    """Sets `pin_memory` to `pinned` in a baseline that has the other value."""

    id: str
    title: str
    pinned: bool
    caveat: str

    def recommend(self, findings: Findings) -> Recommendation | None:
        """Change the pinning alone; without a GPU it has no effect."""
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
