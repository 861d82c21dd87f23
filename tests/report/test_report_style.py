import pytest

from loaderbench.report import style


@pytest.mark.parametrize("place", [i / 100 for i in range(101)])
def test_text_can_be_read_on_every_color_of_the_scale(place: float) -> None:
    paper = style.cividis(place)

    assert style.contrast(style.ink(paper), paper) >= 4.5


def test_a_place_beyond_the_scale_takes_its_end() -> None:
    assert style.cividis(-1) == style.cividis(0)
    assert style.cividis(2) == style.cividis(1)


def test_a_cell_without_a_reading_has_no_color() -> None:
    assert style.cell_style(None) == ""
