"""What bounds a run and why, for the run and for each rank and machine of a distributed training."""

from __future__ import annotations

from dataclasses import dataclass, field

from loaderbench.records.words import About, Bound, Confidence, Limit, Reasons, Stage


@dataclass(frozen=True)
class Evidence:
    """One line of evidence; as text, `label: figures`. Without a `label`, the figures are the whole line."""

    about: About
    label: str
    figures: str

    def __str__(self) -> str:
        return f"{self.label}: {self.figures}" if self.label else self.figures


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What bounds a run, at which stage, and what limits that stage.

    As text, its line: `INPUT-BOUND (high confidence): CPUs saturated; ...`.

    `bound` is `input` (training waits for data), `compute` (the loader keeps up), `transfer` (host-to-device copies) or
    `unknown`. `stage` is the stage to fix, and `limit` is what limits it: docs/reference/verdicts has a page for each
    value. Both are `None` if no cause was found. For `compute`, `limit` is `none`.

    `headline` is the cause in a clause. `evidence` holds lines of text, those of the cause first. `evidence_parts` are
    the same lines with their labels, empty in runs of earlier versions. `against` is the evidence for another cause.
    `confidence` is `high`, `medium` or `low`; `confidence_reasons` say why it is not `high`.

    `work` is your own name of the stage, or its usual one. `read_inside` is the stage in which files are read, if
    reading is blocked and not timed separately. `rank` is the rank of a distributed training that holds back the
    others, if one does. `not_measured` has the reason for each field that is `None`, under its name.
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
    """A rank of a distributed training as it saw itself.

    `data_wait_share` is its own wait for data. `rank_wait_share` is its wait for the batches of other ranks, which is a
    part of its step. `device` is the GPU that it used.
    """

    rank: int
    host: str
    device: str | None
    samples_per_s: float | None
    data_wait_share: float | None
    rank_wait_share: float | None
    verdict: Verdict
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class HostUse:
    """A machine of a distributed training, or all of them, without a name: what its `ranks` load together.

    `read_bytes_per_s` is what their processes asked the system for, with what came from memory.
    """

    host: str
    ranks: int
    samples_per_s: float | None
    read_bytes_per_s: float | None
    not_measured: Reasons = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Hotspot:
    """A line of the user's own code, and the share of loading time in which a thread was at it.

    The share includes what the line calls. `file` is the name of the file, and `path` its path where that is longer.
    `stage` is the one with most of this time. `text` is the line itself, empty where it cannot be read. `below` is the
    library's function that it called most of the time, empty where the line itself ran.
    """

    function: str
    file: str
    line: int
    stage: str
    share: float
    text: str = ""
    below: str = ""
    path: str = ""
