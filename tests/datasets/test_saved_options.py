"""What a saved run says of its dataset is read back by its kind."""

from loaderbench.datasets import options_to_try


def test_a_folder_of_images_has_options_to_try_and_what_is_the_user_s_own_has_none() -> None:
    folder = {"kind": "image_folder", "decoder": "pillow"}
    assert options_to_try(folder) == folder
    assert options_to_try({"decoder": "pillow"}) == {"decoder": "pillow"}
    assert options_to_try({}) == {}
    assert options_to_try({"kind": "target", "target": "mine:make"}) is None
    assert options_to_try({"kind": "of another version"}) is None
