import pytest
from run_hostile import LONG

from loaderbench.report import words


def test_a_long_string_is_cut_and_its_title_holds_the_whole() -> None:
    shown = words.name(LONG)

    assert len(shown.text) == words.NAME_LIMIT
    assert shown.title == LONG


def test_a_short_string_needs_no_title() -> None:
    assert words.name("images").title is None


def test_marks_that_turn_the_direction_of_text_are_removed() -> None:
    assert words.name("evil\u202egpj.exe").text == "evilgpj.exe"


def test_letters_written_from_right_to_left_are_kept() -> None:
    assert words.name("\u05e9\u05dc\u05d5\u05dd").text == "\u05e9\u05dc\u05d5\u05dd"


def test_control_characters_cannot_reach_a_terminal() -> None:
    assert "\x1b" not in words.sentence("a\x1b[31mred\x07").text


def test_a_file_name_that_is_no_unicode_can_still_be_written() -> None:
    assert words.sentence("photo\udcff.jpg").text.encode("utf-8")


def test_of_a_long_message_the_end_is_kept_with_its_lines() -> None:
    shown = words.message_end("start\n" + LONG + "\nRuntimeError: cause")

    assert shown.text.endswith("\nRuntimeError: cause")
    assert shown.text.startswith("\u2026")


def test_a_configuration_without_axes_is_the_loader_as_it_is() -> None:
    assert words.configuration({}).text == "unmodified config"
    assert words.configuration({"num_workers": 2}).text == "num_workers=2"


@pytest.mark.parametrize("limit", [24, 40, words.NAME_LIMIT])
def test_two_long_paths_have_different_labels(limit: int) -> None:
    """They differ at their ends."""
    start = "/mnt/share/datasets/of/the/whole/group/imagenet/ILSVRC2012/"
    one, other = (words.axis_value(f"{start}{name}", limit) for name in ("train", "train_256"))
    assert one.text != other.text
    assert (len(one.text), one.title, other.text[-9:]) == (limit, f"{start}train", "train_256")
    assert words.axis_value("photos", limit).title is None
