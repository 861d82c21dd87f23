"""How much a fix changes the samples: a child process builds both datasets and compares their images."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

from loaderbench.datasets.kind import Ask, DatasetKind, DatasetOrder
from loaderbench.formats import FILES
from loaderbench.records import IDENTICAL, PixelChange

IMAGES = 16  # images to compare, spread over the folder
TIMEOUT_S = 60.0
CHANGES_PIXELS = ("decoder", "transform", "presize")
"""Options that affect the pixels of a sample."""

Pair = tuple[DatasetOrder, DatasetOrder]


def pixel_changes(dataset: DatasetKind, pairs: Sequence[Pair], ask: Ask) -> list[PixelChange]:
    """Return the peak signal-to-noise ratio of each pair in dB, over a few images with the same random crops.

    The images are identical if neither decoder, transform nor size differs. There is no ratio if shapes differ or a
    dataset cannot be built. Copies of another size are compared after a resize and a center crop, because the same seed
    crops a different region of them. Source: ITU-T J.340, for 8 bits.
    """
    if not any(_differs(pair) for pair in pairs):
        return [IDENTICAL] * len(pairs)
    answer: list[PixelChange] | None = ask(_answer, dataset, list(pairs), timeout_s=TIMEOUT_S)
    unknown = PixelChange(None, f"comparing pixels crashed, or took more than {TIMEOUT_S:.0f} s")
    return answer or [unknown if _differs(pair) else IDENTICAL for pair in pairs]


def _differs(pair: Pair) -> bool:
    one, other = (order.arguments for order in pair)
    return any(one.get(name) != other.get(name) for name in CHANGES_PIXELS)


def _answer(pipe: Connection, dataset: DatasetKind, pairs: list[Pair]) -> None:
    pipe.send([_compare(dataset, *pair) if _differs(pair) else IDENTICAL for pair in pairs])


def _compare(dataset: DatasetKind, one: DatasetOrder, other: DatasetOrder) -> PixelChange:
    resized = one.arguments.get("presize") != other.arguments.get("presize")
    compared = _same_images(one, other)
    try:
        made = [_image_getter(dataset, order, resized=resized) for order in compared]
        errors = [_squared_error(made[0], made[1], index) for index in range(len(compared[0].samples))]
    except Exception as error:  # a missing decoder, a broken file: the trial's failure has the details
        return PixelChange(None, (str(error) or type(error).__name__).splitlines()[0])
    mean = sum(errors) / len(errors)
    return PixelChange(10 * math.log10(255**2 / mean)) if mean else IDENTICAL


def _same_images(one: DatasetOrder, other: DatasetOrder) -> list[DatasetOrder]:
    """Both orders with a few samples of the same images, spread over the folder.

    A list of resized copies can be shorter: it then has a copy of every n-th image of the other list.
    """
    fewest = min(len(one.samples), len(other.samples))
    step = max(1, fewest // IMAGES)
    strides = [math.ceil(len(order.samples) / fewest) * step for order in (one, other)]
    return [
        replace(order, samples=order.samples[::stride][:IMAGES])
        for order, stride in zip((one, other), strides, strict=True)
    ]


def _image_getter(dataset: DatasetKind, order: DatasetOrder, *, resized: bool) -> Callable[[int], Any]:
    """Return a function from a number to the uint8 image of that sample, built without a cache.

    Processing that workers leave to the device runs there, or on the CPU if there is no GPU.
    """
    config = {**order.arguments, "normalize": "device", "image_cache": None, "format": FILES, "storage": None}
    if resized:
        config["transform"] = "imagenet_eval"
    source = dataset.build(DatasetOrder(order.samples, config, order.folder)).source
    rest = dataset.rest_on_device(config, _device())
    if rest is None:
        return lambda index: source[index][0]
    from torch.utils.data import default_collate

    return lambda index: rest(default_collate([source[index]]))[0][0].cpu()


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _squared_error(one: Callable[[int], Any], other: Callable[[int], Any], index: int) -> float:
    import torch

    images = []
    for image_of in (one, other):
        torch.manual_seed(index)
        random.seed(index)
        images.append(torch.as_tensor(image_of(index)))
    if images[0].shape != images[1].shape:
        raise ValueError("the samples differ in shape")
    if {image.dtype for image in images} != {torch.uint8}:
        raise ValueError("the transform does not return uint8 images")
    return float(((images[0].float() - images[1]) ** 2).mean())
