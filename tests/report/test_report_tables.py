import pytest

from loaderbench.report import tables


@pytest.mark.parametrize("lengths", [(1, 1, 1), (0.41, 0.34, 0.83, 0.1), (7, 0.0001), (5,), (1, 0, 2)])
def test_what_is_written_of_shares_adds_up_to_a_hundred(lengths: tuple[float, ...]) -> None:
    written = [value.text for value in tables.percentages(tables.shares(lengths))]
    known = [float(text.removesuffix("%")) for text in written if not text.startswith("<")]

    assert sum(known) == pytest.approx(100.0)


def test_a_share_that_rounding_would_hide_is_no_zero_and_a_zero_is_one() -> None:
    assert [value.text for value in tables.percentages([0.9999, 0.0001, 0.0])] == ["100.0%", "<0.1%", "0.0%"]


def test_the_pieces_of_a_bar_lie_end_to_end() -> None:
    pieces = tables.segments(["a", "b", "c"], tables.shares([3, 1, 4]), ["1", "2", "rest"])

    assert [piece.start for piece in pieces] == pytest.approx([0, 0.375, 0.5])
    assert pieces[-1].start + pieces[-1].share == pytest.approx(1)
    assert [piece.said for piece in pieces] == ["a: 37.5%", "b: 12.5%", "c: 50.0%"]


def test_times_of_a_column_have_as_many_decimals_as_the_longest_needs() -> None:
    assert [value.text for value in tables.milliseconds([0.0621, 0.0052, 0.00001, 0.0])] == [
        "62.1",
        "5.2",
        "<0.1",
        "0.0",
    ]
    assert [value.text for value in tables.milliseconds([0.000412, 0.00031])] == ["0.412", "0.310"]


def test_a_time_that_is_not_known_says_why_and_is_no_zero() -> None:
    known, gone = tables.milliseconds([0.1, None], "nobody looked")

    assert (gone.text, gone.missing, gone.sort) == ("not measured: nobody looked", True, None)
    assert known.text == "100.0"


def test_the_longest_piece_has_the_strongest_tone_and_there_are_never_too_few() -> None:
    assert tables.tones([1, 3, 2]) == ["3", "1", "2"]
    assert tables.tones(list(range(9, 0, -1)))[5:] == ["6", "rest", "rest", "rest"]
