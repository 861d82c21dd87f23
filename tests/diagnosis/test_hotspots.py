"""The line of the user's own code with most of the loading time, also if the functions it calls have many lines."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_gathering import trial

from loaderbench.diagnosis.hotspots import busiest_own_line, find_hotspots
from loaderbench.records import CodeLooks, CountedStack, Hotspot, StackFrame, Stage, StageCost, Trial


def of(file: str, line: int, function: str, *, own: bool = True) -> StackFrame:
    return StackFrame(file=file, line=line, function=function, own=own)


GETITEM = of("data.py", 40, "Masks.__getitem__")
LOOP = of("data.py", 17, "inside")
TEST = of("data.py", 18, "inside")
RETURN = of("data.py", 20, "inside")
LIBRARY = of("PIL/ImageDraw.py", 300, "ImageDraw.polygon", own=False)
ROW = of("data.py", 40, "Masks.__getitem__.<locals>.<listcomp>")
COMPOSE = of("albumentations/core/composition.py", 610, "Compose.__call__", own=False)
FRAMES = (GETITEM, LOOP, TEST, RETURN, LIBRARY, ROW, COMPOSE)


Sampled = tuple[tuple[StackFrame, ...], float]


def sampled(*stacks: Sampled, stage: Stage = "sample") -> list[Trial]:
    counted = tuple(
        CountedStack(stage, tuple(FRAMES.index(frame) for frame in frames), seconds) for frames, seconds in stacks
    )
    return [trial(1, code_looks=CodeLooks(100, FRAMES, counted))]


def busiest(*stacks: Sampled) -> Hotspot | None:
    return busiest_own_line(sampled(*stacks))


def test_the_caller_is_named_if_a_function_spreads_its_time_over_lines() -> None:
    found = busiest(((GETITEM, LOOP), 0.3), ((GETITEM, TEST), 0.4), ((GETITEM, RETURN), 0.2), ((GETITEM,), 0.1))
    assert found is not None
    assert (found.line, found.share, found.below) == (40, pytest.approx(1.0), "")


def test_a_line_with_half_of_the_time_is_named_rather_than_its_caller() -> None:
    found = busiest(((GETITEM, LOOP), 0.3), ((GETITEM, TEST), 0.6), ((GETITEM,), 0.1))
    assert found is not None
    assert (found.line, found.share) == (18, pytest.approx(0.6))


def test_a_function_that_two_lines_call_is_named_rather_than_one_of_them() -> None:
    found = busiest(((GETITEM, TEST), 0.6), ((LOOP, TEST), 0.4))
    assert found is not None
    assert (found.line, found.share) == (18, pytest.approx(1.0))


def test_the_library_function_that_takes_most_of_a_line_is_named() -> None:
    found = busiest(((GETITEM, LIBRARY), 0.8), ((GETITEM,), 0.2))
    assert found is not None
    assert (found.line, found.below) == (40, "ImageDraw.polygon")


@pytest.mark.parametrize(
    ("parts", "below"),
    [
        ({"ElasticTransform": 0.6, "RandomCrop": 0.3}, "ElasticTransform"),
        ({"ElasticTransform": 0.5, "RandomCrop": 0.5}, "Compose.__call__"),
        ({}, "Compose.__call__"),
    ],
)
def test_of_a_chain_of_transforms_the_one_with_most_of_the_time_is_named(parts: dict[str, float], below: str) -> None:
    (sampled_trial,) = sampled(((GETITEM, COMPOSE, LIBRARY), 0.9), ((GETITEM, COMPOSE), 0.1), stage="transform")
    known = {f"transform/{name}": StageCost(wall_s, wall_s) for name, wall_s in parts.items()}
    (line,) = find_hotspots([replace(sampled_trial, stage_parts=known or None)])
    assert line.below == below


def test_a_function_with_work_of_its_own_stays_named() -> None:
    (sampled_trial,) = sampled(((GETITEM, LIBRARY), 1.0), stage="transform")
    known = {"transform/ElasticTransform": StageCost(1.0, 1.0)}
    (line,) = find_hotspots([replace(sampled_trial, stage_parts=known)])
    assert line.below == "ImageDraw.polygon"


def test_a_recursive_line_counts_once_for_each_stack() -> None:
    found = busiest(((GETITEM, TEST, TEST), 0.4), ((GETITEM, LOOP), 0.6))
    assert found is not None
    assert (found.line, found.share) == (17, pytest.approx(0.6))


def test_a_comprehension_counts_as_the_line_it_is_in() -> None:
    (line,) = find_hotspots(sampled(((GETITEM, ROW), 0.8), ((GETITEM,), 0.2)))
    assert (line.line, line.function, line.share) == (40, "Masks.__getitem__", pytest.approx(1.0))
    found = busiest(((GETITEM, ROW, LOOP), 0.4), ((GETITEM, ROW), 0.3), ((GETITEM,), 0.3))
    assert found is not None
    assert (found.line, found.function, found.share) == (40, "Masks.__getitem__", pytest.approx(1.0))


def test_no_line_is_named_without_own_code_or_without_stacks() -> None:
    assert busiest(((LIBRARY,), 1.0)) is None
    assert busiest_own_line([trial(1)]) is None
