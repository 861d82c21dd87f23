"""A line of the user's own code that takes most of the loading time is named in the title of the fix."""

from __future__ import annotations

from dataclasses import replace

import pytest
from planted_causes import CAUSES, diagnosis as diagnosis_of, told

from loaderbench.records import Hotspot, Recommendation
from loaderbench.remedies.wording import TITLE_LIMIT

LINE = Hotspot(function="grain", file="data.py", line=28, stage="transform", share=0.54)


def advised(line: Hotspot | None, fix: str = "cheaper_sample", **verdict: str) -> dict[str, Recommendation]:
    found = replace(diagnosis_of(CAUSES[fix]), options=None)
    stage = {"stage": line.stage if line else "transform"}
    facts = replace(found.facts, hot_line=line)
    known = replace(found, facts=facts, verdict=replace(found.verdict, **{**stage, **verdict}))  # type: ignore[arg-type]
    return {answer.id: answer for answer in told(known)}


def test_the_title_names_the_line_and_its_share() -> None:
    assert advised(LINE)["cheaper_sample"].title == "Speed up data.py:28 (54% of loading time)"
    of_collate = advised(replace(LINE, stage="collate", share=0.86), "cheaper_collate")
    assert of_collate["cheaper_collate"].title == "Speed up data.py:28 (86% of loading time)"


@pytest.mark.parametrize("name", ["train_{fold}", "a{}", "{"])
def test_a_file_may_have_braces_in_its_name(name: str) -> None:
    line = replace(LINE, file=f"{name}.py")
    assert advised(line)["cheaper_sample"].title == f"Speed up {name}.py:28 (54% of loading time)"


@pytest.mark.parametrize(
    "line",
    [None, replace(LINE, file=f"{'long_name' * 5}.py")],
    ids=["no line", "a long file name"],
)
def test_the_title_is_general_without_such_a_line(line: Hotspot | None) -> None:
    title = advised(line)["cheaper_sample"].title
    assert title == "Speed up __getitem__: cache or use a compiled library"
    assert len(title) <= TITLE_LIMIT


def test_a_line_of_another_stage_is_not_named() -> None:
    assert "data.py" not in advised(replace(LINE, stage="decode"), stage="transform")["cheaper_sample"].title


@pytest.mark.parametrize("limit", ["workers", "oversubscription", "quota"])
@pytest.mark.parametrize(("stage", "fix"), [("transform", "cheaper_sample"), ("collate", "cheaper_collate")])
def test_the_line_is_advised_next_to_the_fixes_of_other_limits(stage: str, fix: str, limit: str) -> None:
    line = replace(LINE, stage=stage)
    assert advised(line, fix, limit=limit)[fix].title.startswith("Speed up data.py:28")
    assert fix not in advised(None, fix, stage=stage, limit=limit)


def test_other_transforms_are_not_advised_if_the_time_is_in_own_python_code() -> None:
    fix = "transforms_v2_uint8"
    stage = {"stage": "transform", "limit": "cpu"}
    assert fix not in advised(LINE, fix, **stage)
    assert fix in advised(replace(LINE, below="Compose.__call__"), fix, **stage)
    assert fix in advised(None, fix, **stage)


def test_a_line_of_the_loop_has_its_share_of_step_time_and_comes_first() -> None:
    """The rest is 60% of step time, and 90% of the rest is in the line."""
    found = told(diagnosis_of(CAUSES["faster_loop"]))
    assert found[0].title == "Speed up train.py:44 (54% of step time)"
    (between,) = [one for one in told(diagnosis_of(CAUSES["between_epochs"])) if one.id == "between_epochs"]
    assert between.title == "Speed up train.py:44 (27% of time)"


@pytest.mark.parametrize(("rest", "wait", "is_advised"), [(0.6, 0.5, True), (0.6, 0.6, False), (0.1, 0.01, False)])
def test_a_line_of_the_loop_is_advised_if_it_takes_longer_than_the_wait(
    rest: float, wait: float, is_advised: bool
) -> None:
    found = diagnosis_of(CAUSES["faster_loop"])
    facts = replace(found.facts, rest_share=rest, wait_share=wait)
    assert ("faster_loop" in {one.id for one in told(replace(found, facts=facts))}) == is_advised
