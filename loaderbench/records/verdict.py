"""Verdicts: what bounds a run and why, for the run and for each rank and machine of a distributed training."""

from __future__ import annotations

from dataclasses import dataclass, field

from loaderbench.records.inside import LoopLine
from loaderbench.records.words import About, Bound, Confidence, Limit, Reasons, Stage


@dataclass(frozen=True)
class Evidence:
    """One line of evidence, written as `label: figures`. Without a `label`, the figures are the complete line."""

    about: About
    label: str
    figures: str

    def __str__(self) -> str:
        return f"{self.label}: {self.figures}" if self.label else self.figures


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What bounds a run, at which stage, and what limits that stage.

    `str(verdict)` is one line: `INPUT-BOUND (high confidence): CPUs saturated; ...`.

    `bound` is `input` (training waits for data), `compute` (the loader keeps up), `transfer` (host-to-device copies) or
    `unknown`. `stage` is the stage to fix, and `limit` is what limits it: docs/reference/verdicts has a page for each
    value. Both are `None` if no cause was found. For `compute`, `limit` is `none`.

    `headline` is the cause in a clause. `evidence` holds lines of text, those of the cause first. `evidence_parts` are
    the same lines with their labels, empty in runs of earlier versions. `against` is the evidence for another cause.
    `confidence` is `high`, `medium` or `low`; `confidence_reasons` say why it is not `high`.

    `work` is your own name for the stage, or its usual name. `read_inside` is the stage in which files are read, if
    reading is blocked and not timed separately. `rank` is the slow rank of a distributed training that the
    headline names, if any. `not_measured` has the reasons for a missing `stage` or `limit`.
    """

    bound: Bound
    stage: Stage | None
    limit: Limit | None
    headline: str
    evidence: tuple[str, ...]
    confidence: Confidence
    evidence_parts: tuple[Evidence, ...] = ()
    work: str | None = None
    read_inside: Stage | None = None
    against: tuple[str, ...] = ()
    confidence_reasons: tuple[str, ...] = ()
    rank: int | None = None
    not_measured: Reasons = field(default_factory=dict)

    def __str__(self) -> str:
        bound = "UNKNOWN" if self.bound == "unknown" else f"{self.bound.upper()}-BOUND"
        return f"{bound} ({self.confidence} confidence): {self.headline}"


@dataclass(frozen=True, kw_only=True)
class Rank:
    """One rank of a distributed training, with its own readings and verdict.

    `data_wait_share` is the rank's own data wait. `rank_wait_share` is its wait for the batches of other ranks, which
    is part of its step. `is_wait_estimated`: it follows from the backward passes of all ranks. `device` is the GPU
    that it used. `step_parts` are shares of step time, by part; empty if its steps were not divided. `step_line` is the
    line of the user's code with most of the rest of a step.
    """

    rank: int
    host: str
    device: str | None
    samples_per_s: float | None
    data_wait_share: float | None
    rank_wait_share: float | None
    verdict: Verdict
    is_wait_estimated: bool = False
    step_parts: dict[str, float] = field(default_factory=dict)
    step_line: LoopLine | None = None
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class HostUse:
    """The combined load of the `ranks` on one machine of a distributed training.

    With an empty `host`, the record covers all machines. `read_bytes_per_s` counts the bytes that their processes read,
    including those from the page cache.
    """

    host: str
    ranks: int
    samples_per_s: float | None
    read_bytes_per_s: float | None
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Hotspot:
    """A line of the user's own code, and the share of loading time that a thread spent at it.

    The share includes calls from the line. `file` is the name of the file, and `path` its path if that is longer.
    `stage` is the stage with most of this time. `text` is the source line, empty if it cannot be read. `below` is the
    library function that the line called most of the time, empty if the line itself ran.
    """

    function: str
    file: str
    line: int
    stage: str
    share: float
    text: str = ""
    below: str = ""
    path: str = ""
