"""A run before anything is concluded from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from loaderbench.records import (
    Config,
    DatasetSummary,
    Environment,
    Kind,
    PlanSummary,
    Reasons,
    Trial,
    Verification,
)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A run before anything is concluded from it. `twins` are the second half of the A/A pair.

    `rungs` are the ladder's trials, `no_rungs` why others (or all, under `ladder`) were not measured. `verification`
    are the remedies that were tried, `no_verification` why there is none.
    """

    name: str
    suite: dict[str, Any]
    environment: Environment
    dataset: DatasetSummary
    plan: PlanSummary
    configs: Sequence[Config]
    baseline: Config
    baseline_why: str
    consumer: str
    trials: Sequence[Trial]
    twins: Sequence[Trial]
    cpu_percent_before: float | None
    started_at: str
    finished_at: str
    complete: bool
    notes: Sequence[str] = field(default_factory=tuple)
    version: str = ""
    suite_file: str = ""
    overrides: dict[str, Any] = field(default_factory=dict)
    kind: Kind = "sweep"
    rungs: Sequence[Trial] = ()
    no_rungs: Reasons = field(default_factory=dict)
    verification: Verification | None = None
    no_verification: str = ""

    @property
    def loader(self) -> dict[str, Any]:
        """The fixed arguments of the loader."""
        return self.suite.get("loader") or {}

    @property
    def demand(self) -> float:
        """Samples/s that an emulated accelerator takes."""
        return float((self.suite.get("consumer") or {}).get("demand") or 1.0)

    @property
    def options(self) -> dict[str, Any] | None:
        """The dataset's options, of a folder of images; `None` for what is the user's own."""
        dataset = self.suite.get("dataset") or {}
        return dataset if self.kind == "sweep" and dataset.get("kind", "image_folder") == "image_folder" else None
