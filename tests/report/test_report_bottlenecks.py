"""The section of what stages would gain if they were free."""

from __future__ import annotations

from dataclasses import replace

import run_factory as runs

from loaderbench.records import Bottleneck, FreedPart, Interval, Readings, RunRecord, WorkerSetting
from loaderbench.report.model import Chart, Facts, Table
from loaderbench.report.sections.bottlenecks import section
from loaderbench.report.view import View

DECODE = Bottleneck(
    stage="decode", samples_per_s_if_free=Interval(605.0, 473.0, 774.0), gain_if_free=Interval(1.64, 1.43, 1.89)
)
READ = Bottleneck(
    stage="read", samples_per_s_if_free=Interval(347.0, 300.0, 400.0), gain_if_free=Interval(0.96, 0.84, 1.09)
)
CROP = FreedPart(
    name="RandomResizedCrop", samples_per_s_if_free=Interval(493.0, None, None), gain_if_free=Interval(1.21, None, None)
)


def drawn(*found: Bottleneck, **reasons: str) -> tuple[object, ...]:
    run: RunRecord = replace(runs.typical(), bottlenecks=found, not_measured=reasons)
    made = section(View(run, Readings()))
    return made.blocks if made is not None else ()


def test_a_row_for_each_stage_with_its_gain_and_its_rate() -> None:
    table = next(block for block in drawn(DECODE, READ) if isinstance(block, Table))
    cells = [[getattr(cell, "text", cell) for cell in row.cells] for row in table.rows]
    assert [row[0] for row in cells] == ["Decode", "Read"]
    assert cells[0][1] == "+64% (43\N{EN DASH}89%)"
    assert cells[1][1] == "not significant (\N{MINUS SIGN}16 to 9%)"


def test_a_named_transform_of_one_round_has_a_row_and_no_bar() -> None:
    transform = replace(DECODE, stage="transform", parts=(CROP,))
    blocks = drawn(transform)
    (chart,) = (block for block in blocks if isinstance(block, Chart))
    (table,) = (block for block in blocks if isinstance(block, Table))
    assert "RandomResizedCrop" not in str(chart)
    assert "+21% (n = 1)" in str(table)


def test_stages_that_were_not_free_have_their_reason_and_a_run_without_any_has_no_section() -> None:
    reasons = {
        "bottlenecks.read": "no time",
        "bottlenecks.transport": "a reason",
        "bottlenecks.transform/Crop": "no time",
    }
    (facts,) = (block for block in drawn(DECODE, **reasons) if isinstance(block, Facts))
    assert [(fact.label, fact.value.text) for fact in facts.facts] == [
        ("Not measured", "Read, Crop: no time"),
        ("Not measured", "Worker-to-main IPC: a reason"),
    ]
    assert drawn() == ()


def test_other_workers_that_were_measured_next_to_the_stages_have_a_table() -> None:
    gains = {3: Interval(1.3, 1.2, 1.4), 4: Interval(1.01, 0.9, 1.1)}
    settings = tuple(
        WorkerSetting(
            name="more_workers", change={"num_workers": count}, samples_per_s=Interval(130.0, None, None), gain=gain
        )
        for count, gain in gains.items()
    )
    made = section(View(replace(runs.typical(), bottlenecks=(DECODE,), worker_settings=settings), Readings()))
    assert made is not None
    _, others = (block for block in made.blocks if isinstance(block, Table))
    assert [[getattr(cell, "text", "") for cell in row.cells][:2] for row in others.rows] == [
        ["num_workers=3", "+30% (20\N{EN DASH}40%)"],
        ["num_workers=4", "not significant (\N{MINUS SIGN}10 to 10%)"],
    ]
    assert others in made.glance


def test_a_transform_with_the_name_of_a_stage_has_a_bar_of_its_own() -> None:
    named = replace(CROP, name="Decode", gain_if_free=Interval(1.2, 1.1, 1.3))
    (chart,) = (block for block in drawn(replace(DECODE, parts=(named,))) if isinstance(block, Chart))
    (bars,) = chart.figures[0]["data"]
    axis = chart.figures[0]["layout"]["light"]["yaxis"]
    assert len(set(bars["y"])) == len(bars["x"]) == 2
    assert (axis["tickvals"], axis["ticktext"]) == (bars["y"], ["Decode", "Decode"])
