"""Images that a dataset opens with Pillow are timed, and otherwise as without us."""

from __future__ import annotations

import copy
import pickle
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
from listed import Listed
from PIL import Image
from torch.utils.data import DataLoader

from loaderbench import Profiler

pytestmark = pytest.mark.usefixtures("without_collector")


def test_an_image_that_is_opened_and_never_loaded_is_closed_at_once(tmp_path: Path) -> None:
    file = tmp_path / "photo.png"
    Image.new("RGB", (4, 3)).save(file)
    opened: list[weakref.ref[Any]] = []

    class Sizes(Listed):
        def __getitem__(self, index: int) -> torch.Tensor:
            image = Image.open(file)
            opened.append(weakref.ref(image))
            return torch.tensor(image.size)

    with Profiler("train", trace=True) as prof:
        list(prof.iter(DataLoader(Sizes(), batch_size=4)))
    assert len(opened) == 64
    assert all(one() is None for one in opened)


def test_an_image_is_loaded_pickled_and_copied_as_without_us(tmp_path: Path) -> None:
    file = tmp_path / "photo.png"
    Image.new("RGB", (4, 3), "red").save(file)
    kinds: set[type] = set()

    class Unusual(Listed):
        def __getitem__(self, index: int) -> torch.Tensor:
            pixels = Image.open(file).load()
            assert pixels is not None
            sent = pickle.loads(pickle.dumps(Image.open(file)))
            copied = copy.copy(Image.open(file))
            assert Image.open(file) == Image.open(file)
            image = Image.open(file)
            with image:
                reds = [one.convert("RGB").getpixel((0, 0)) for one in (image, sent, copied)]
            kinds.add(type(image))
            assert [*reds, pixels[0, 0]] == [(255, 0, 0)] * 4
            return torch.tensor(image.size)

    with Profiler("train", trace=True) as prof:
        assert len(list(prof.iter(DataLoader(Unusual(), batch_size=4)))) == 16
    assert [kind.__module__ for kind in kinds] == ["PIL.PngImagePlugin"]
    assert isinstance(Image.open(file), kinds.pop())
    (trial,) = prof.result.trials
    assert trial.stages["decode"].wall_s > 0
