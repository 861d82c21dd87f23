"""Copies of what a stage gave are the same as the originals, until one of them is changed."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from loaderbench.freeing.replay import copy_of, is_same


def test_an_opened_image_is_the_same_as_its_copy_until_it_is_changed(tmp_path: Path) -> None:
    Image.new("RGB", (8, 8), (200, 10, 10)).save(tmp_path / "one.jpg")
    opened = Image.open(tmp_path / "one.jpg")
    kept = copy_of(opened)
    assert type(kept) is not type(opened)
    assert is_same(kept, opened)
    opened.putpixel((0, 0), (0, 0, 0))
    assert not is_same(kept, opened)


def test_a_closed_image_cannot_be_the_same(tmp_path: Path) -> None:
    Image.new("RGB", (8, 8)).save(tmp_path / "one.png")
    opened = Image.open(tmp_path / "one.png")
    kept = copy_of(opened)
    opened.close()
    later = Image.open(tmp_path / "one.png")
    later.close()
    assert not is_same(kept, later)
