"""The sections of the report, a file for each topic. Registered sections are drawn in this order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from loaderbench.report.model import Section
from loaderbench.report.sections import (
    about,
    around_sweep,
    bottlenecks,
    comparison,
    cost,
    failures,
    gpu_memory,
    inside,
    isolation,
    lanes,
    noise,
    pipeline,
    ranks,
    recommendations,
    scaling,
    stacks,
    sweep,
    timeline,
    trials,
    verdict,
)
from loaderbench.report.view import View

Builder = Callable[[View], Section | Sequence[Section] | None]
"""Builds the part of the report from one file: a section, several related ones, or none."""

SECTIONS: tuple[Builder, ...] = (
    comparison.section,
    verdict.finding,
    ranks.section,
    pipeline.section,
    verdict.figures,
    bottlenecks.section,
    recommendations.section,
    sweep.section,
    around_sweep.dropped,
    around_sweep.parity,
    around_sweep.copies,
    scaling.section,
    inside.sections,
    stacks.flame_graph,
    isolation.section,
    cost.section,
    gpu_memory.section,
    lanes.section,
    timeline.section,
    noise.section,
    failures.section,
    trials.section,
    about.section,
)


OF_TWO_VERSIONS: tuple[Builder, ...] = (
    comparison.section,
    verdict.finding,
    inside.sections,
    noise.section,
    failures.section,
    trials.section,
    about.section,
)
"""The sections for `ab`, which does not sweep the later version."""


def sections(view: View) -> tuple[Section, ...]:
    """The sections of this run that have content."""
    built = (build(view) for build in (OF_TWO_VERSIONS if view.run.side_by_side else SECTIONS))
    return tuple(one for some in built for one in ((some,) if isinstance(some, Section) else some or ()))
