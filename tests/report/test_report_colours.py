import pytest

from loaderbench.report import colours


@pytest.mark.parametrize("place", [i / 100 for i in range(101)])
def test_text_can_be_read_on_every_colour_of_the_scale(place: float) -> None:
    paper = colours.cividis(place)

    assert colours.contrast(colours.ink(paper), paper) >= 4.5


def test_a_place_beyond_the_scale_takes_its_end() -> None:
    assert colours.cividis(-1) == colours.cividis(0)
    assert colours.cividis(2) == colours.cividis(1)


def test_a_cell_without_a_reading_has_no_colour() -> None:
    assert colours.cell_style(None) == ""
