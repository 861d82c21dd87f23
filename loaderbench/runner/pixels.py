"""How much a remedy changes the samples themselves: a child builds both datasets and compares what they give."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

from loaderbench.runner.child import image_samples
from loaderbench.runner.protocol import TrialOrder
from loaderbench.runner.server import TrialServer
from loaderbench.suite import ImageFolder

IMAGES = 16  # spread over the folder
TIMEOUT_S = 60.0
_CHANGES_PIXELS = ("decoder", "transform", "presize")

Pair = tuple[TrialOrder, TrialOrder]


def psnr_of(server: TrialServer, pairs: Sequence[Pair]) -> list[float | None]:
    """The peak signal-to-noise ratio of each pair in dB, over some images with the same random crops.

    `None` where the samples are the same, where neither decoder, transform nor size differs, and where they cannot be
    compared: their shapes differ, or a dataset cannot be built. Copies of another size are compared by a resize and a
    centre crop, for a random crop of them is another one. Source: ITU-T J.340, for 8 bits.
    """
    if not any(_differs(pair) for pair in pairs):
        return [None] * len(pairs)
    answer = server.ask(_answer, list(pairs), timeout_s=TIMEOUT_S)
    return answer if isinstance(answer, list) else [None] * len(pairs)


def _differs(pair: Pair) -> bool:
    one, other = (order.planned.config for order in pair)
    in_folder = isinstance(pair[0].suite.dataset, ImageFolder)
    return in_folder and any(one.get(name) != other.get(name) for name in _CHANGES_PIXELS)


def _answer(pipe: Connection, pairs: list[Pair]) -> None:
    pipe.send([_psnr(*pair) if _differs(pair) else None for pair in pairs])


def _psnr(one: TrialOrder, other: TrialOrder) -> float | None:
    resized = one.planned.config.get("presize") != other.planned.config.get("presize")
    try:
        datasets = [_dataset(order, resized=resized) for order in (one, other)]
        errors = [_squared_error(datasets[0], datasets[1], index) for index in range(len(datasets[0]))]
    except Exception:  # a decoder that is not there, an image that is none: the trial itself tells of it
        return None
    mean = sum(errors) / len(errors)
    return None if mean == 0 else 10 * math.log10(255**2 / mean)


def _dataset(order: TrialOrder, *, resized: bool) -> Any:
    """Some of the samples, uint8, without a cache."""
    step = max(1, len(order.samples) // IMAGES)
    config = {**order.suite.loader, **order.planned.config, "normalize": "device", "image_cache": None}
    if resized:
        config["transform"] = "imagenet_eval"
    return image_samples(replace(order, samples=order.samples[::step][:IMAGES]), config)


def _squared_error(one: Any, other: Any, index: int) -> float:
    import torch

    images = []
    for dataset in (one, other):
        torch.manual_seed(index)
        random.seed(index)
        images.append(torch.as_tensor(dataset[index][0]).float())
    if images[0].shape != images[1].shape:
        raise ValueError("the samples differ in shape")
    return float(((images[0] - images[1]) ** 2).mean())
