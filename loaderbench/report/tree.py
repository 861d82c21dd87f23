"""The whole tree of a report."""

from __future__ import annotations

from dataclasses import dataclass

from loaderbench.report.parts import (
    Download,
    Fact,
    FailureGroup,
    Link,
    RecommendationsPart,
    ScalingPart,
    State,
    SweepPart,
    Table,
    Term,
    Text,
    TimelinePart,
    VerdictPart,
)
from loaderbench.report.parts_charts import CostPart, NoiseCharts
from loaderbench.report.parts_inside import Breakdown, Choice, InsidePart


@dataclass(frozen=True, kw_only=True)
class ReportDocument:
    """A report, ready to be drawn. A part that has no data is `None` or empty, and is not drawn at all.

    `shown` is the one of the `choices` that the page shows at first; `inside` is of it. `glance` is what a terminal or
    a notebook shows below the headline, where that is not the ranking of a sweep; `apart_glance` what it shows below
    that of a configuration with parts taken away.
    """

    name: Text
    page_title: str
    state: State
    facts: tuple[Fact, ...]
    warnings: tuple[Text, ...]
    notes: tuple[Text, ...]
    sections: tuple[Link, ...]
    verdict: VerdictPart
    recommendations: RecommendationsPart | None
    tried: Breakdown | None = None
    sweep: SweepPart | None
    sweep_hint: str | None
    ranking: Table | None
    scaling: ScalingPart | None
    choices: tuple[Choice, ...] = ()
    shown: Choice | None = None
    inside: InsidePart | None
    apart: tuple[Breakdown, ...]
    apart_glance: tuple[Table | Fact, ...]
    cost: CostPart | None = None
    timeline: TimelinePart | None
    noise_title: str
    noise: tuple[Fact, ...]
    noise_charts: NoiseCharts | None = None
    failures: tuple[FailureGroup, ...]
    trials_title: str
    trials: Table | None
    readings: tuple[Fact, ...]
    environment: tuple[Fact, ...]
    method: tuple[str, ...]
    glossary: tuple[Term, ...]
    downloads: tuple[Download, ...]
    downloads_note: str | None = None
    made_by: str
    glance: tuple[Table | Fact, ...]
