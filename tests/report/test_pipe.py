"""A pipe is as wide as its rates, to scale where it matters, and its pieces join."""

from __future__ import annotations

from itertools import pairwise

import pytest

from loaderbench.report.pipe import HEIGHT, WIDTH, Piece, draw_pipe


def places(points: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, _, y in (point.partition(",") for point in points.split())]


def width(piece: Piece) -> float:
    """Of the middle of a piece, which the one before and after it do not narrow."""
    left, right = ({y: x for x, y in places(wall)} for wall in piece.walls)
    return max(right[y] - left[y] for y in left)


def test_widths_are_as_the_rates() -> None:
    pipe = draw_pipe([1000, 500, 800], 480, 900)

    assert width(pipe.pieces[1]) == pytest.approx(0.5 * width(pipe.pieces[0]), rel=1e-3)
    assert width(pipe.pieces[2]) == pytest.approx(0.8 * width(pipe.pieces[0]), rel=1e-3)
    assert pipe.pieces[0].flow.width == pytest.approx(0.48 * width(pipe.pieces[0]), rel=1e-3)
    assert pipe.marks
    assert pipe.marks[1] - pipe.marks[0] == pytest.approx(0.9 * width(pipe.pieces[0]), rel=1e-3)
    assert not [piece for piece in pipe.pieces if piece.beyond]


def test_what_is_many_times_wider_than_the_lowest_is_beyond_the_scale_and_does_not_hide_the_others() -> None:
    pipe = draw_pipe([40_000, 844, 873], 836, 1000)

    assert [piece.beyond for piece in pipe.pieces] == [True, False, False]
    assert width(pipe.pieces[0]) == WIDTH
    assert width(pipe.pieces[1]) > 0.4 * WIDTH


def test_a_rate_beyond_the_scale_is_not_drawn_across() -> None:
    assert draw_pipe([200, 300], 180, 100_000).marks is None
    assert draw_pipe([200, 300], 180, None).marks is None


def test_neighbors_meet_at_the_width_of_the_narrower_and_all_lies_in_the_box() -> None:
    pipe = draw_pipe([5000, 500, None, 800], 480, 900)
    for upper, lower in pairwise(pipe.pieces):
        for above, below in zip(upper.walls, lower.walls, strict=True):
            assert places(above)[-1][0] == places(below)[0][0]
    for piece in pipe.pieces:
        for x, y in places(" ".join((*piece.walls, piece.area))):
            assert 0 <= x <= WIDTH
            assert 0 <= y <= HEIGHT


def test_an_unknown_width_has_no_area_and_is_as_wide_as_the_flow_where_it_holds_it_back() -> None:
    free, neck = draw_pipe([None, 900], 300, None), draw_pipe([None, 900], 300, None, neck=0)

    assert (free.pieces[0].area, neck.pieces[0].area) == ("", "")
    assert width(free.pieces[0]) == WIDTH
    assert width(neck.pieces[0]) == pytest.approx(neck.pieces[1].flow.width)


def test_the_flow_is_never_drawn_wider_than_its_pipe() -> None:
    pipe = draw_pipe([100, 400], 300, None)

    assert pipe.pieces[0].flow.width == pytest.approx(width(pipe.pieces[0]), abs=0.2)


@pytest.mark.parametrize("rates", [[], [None], [0.0, 0.0], [float("inf"), 10.0], [1e300, 1e-300]])
def test_rates_that_nothing_has_can_be_drawn(rates: list[float | None]) -> None:
    pipe = draw_pipe(rates, 5.0, None)

    assert len(pipe.pieces) == len(rates)
    assert "nan" not in str(pipe)
