"""Batches that no image classifier takes: copied and emulated where nobody asked for training, else one clear line."""

from __future__ import annotations

import math
from collections import UserDict, namedtuple
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from loaderbench.consumers import make_consumer
from loaderbench.consumers.batch_parts import changed, why_no_classifier
from loaderbench.consumers.by_first_batch import ByFirstBatch
from loaderbench.consumers.emulated import EmulatedAccelerator
from loaderbench.consumers.step_options import StepOptions
from loaderbench.consumers.training_step import TrainingStep
from loaderbench.diagnosis.failures import classify
from loaderbench.recorder import Rules, measure
from loaderbench.suite import Suite

IMAGE, MASK = torch.zeros(3, 32, 32), torch.zeros(32, 32, dtype=torch.long)
Pair = namedtuple("Pair", ["image", "label"])

SAMPLES: dict[str, tuple[Any, str]] = {
    "a pair": ((IMAGE, 1), ""),
    "a named pair": (Pair(IMAGE, 1), ""),
    "bytes": ((IMAGE.to(torch.uint8), 1), ""),
    "five parts, of which the first two fit": ((IMAGE, 1, "path", 3, MASK), ""),
    "a dict": ({"image": IMAGE, "mask": MASK}, "batches are dicts with image, mask"),
    "a bare tensor": (IMAGE, "a float32 tensor of shape (4, 3, 32, 32), without labels"),
    "segmentation": ((IMAGE, MASK), "the second part of a batch is an int64 tensor of shape (4, 32, 32)"),
    "regression": ((IMAGE, 0.5), "the second part of a batch is a float64 tensor of shape (4)"),
    "one channel": ((IMAGE[:1], 1), "the first part of a batch is a float32 tensor of shape (4, 1, 32, 32)"),
    "text": ((MASK[0], 1), "the first part of a batch is an int64 tensor of shape (4, 32)"),
    "detection": ((IMAGE, {"boxes": torch.zeros(4)}), "the second part of a batch is dict"),
    "one part": ((IMAGE,), "batches have 1 part, without labels"),
}


@dataclass(frozen=True)
class Labeled:
    """What a collate function of the user's own may return; it is never made anew from its parts."""

    images: torch.Tensor
    labels: torch.Tensor
    paths: list[str]
    count: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", len(self.paths))
        MADE.append(self)


MADE: list[Labeled] = []


def labeled(samples: list[Any]) -> Labeled:
    images, labels = zip(*samples, strict=True)
    return Labeled(torch.stack(images), torch.tensor(labels), ["a.jpg"] * len(samples))


class Same(Dataset[Any]):
    def __init__(self, sample: Any) -> None:
        self.sample = sample

    def __len__(self) -> int:
        return 400

    def __getitem__(self, index: int) -> Any:
        return self.sample


def loader(name: str) -> DataLoader[Any]:
    return DataLoader(Same(SAMPLES[name][0]), batch_size=4)


@pytest.mark.parametrize("name", SAMPLES)
def test_what_a_batch_is_is_told(name: str) -> None:
    said, expected = why_no_classifier(next(iter(loader(name)))), SAMPLES[name][1]
    assert (said == "") == (expected == "")
    assert expected in said


@pytest.mark.parametrize("name", ["a pair", "a dict", "a bare tensor", "segmentation", "detection"])
def test_every_batch_is_consumed_and_timed_and_a_note_says_how(name: str) -> None:
    consumer = ByFirstBatch(Step(), EmulatedAccelerator(2_000.0), "cpu", 2_000.0)
    found = measure(loader(name), consumer, Rules(seconds=0.2), batch_size=4)
    assert found.batches >= 5
    assert len(found.waits_s) == found.batches
    if SAMPLES[name][1]:
        assert SAMPLES[name][1] in consumer.note
        assert "consumed at 2,000 samples/s" in consumer.note
        assert found.samples_per_s < 2_200
    else:
        assert consumer.note == ""


def test_a_mapping_of_a_library_keeps_its_type_and_its_tensors_are_changed() -> None:
    batch = UserDict({"input_ids": torch.zeros(4), "text": "a"})
    found = changed(batch, lambda tensor: tensor + 1)
    assert type(found) is UserDict
    assert (found["input_ids"].tolist(), found["text"]) == ([1.0] * 4, "a")
    assert batch["input_ids"].tolist() == [0.0] * 4
    assert why_no_classifier(batch) == "batches are UserDict with input_ids, text"


def test_no_demand_caps_the_gain_of_a_fix() -> None:
    consumer = ByFirstBatch(Step(), EmulatedAccelerator(math.inf), "cpu", math.inf)
    assert measure(loader("a dict"), consumer, Rules(seconds=0.1), batch_size=4).samples_per_s > 2_000


def test_the_tensors_of_a_dataclass_are_changed_and_the_rest_of_it_is_kept() -> None:
    batch = labeled([(IMAGE, 1)] * 3)
    MADE.clear()
    found = changed(batch, lambda tensor: tensor + 1)
    assert (type(found), MADE) == (Labeled, [])
    assert (float(found.images.min()), found.labels.tolist(), found.paths, found.count) == (
        1.0,
        [2] * 3,
        batch.paths,
        3,
    )
    assert batch.labels.tolist() == [1] * 3


def test_a_dataclass_is_trained_on_and_its_samples_are_counted() -> None:
    batches = DataLoader(Same((torch.rand(3, 32, 32), 1)), batch_size=4, collate_fn=labeled)
    step = TrainingStep(StepOptions(model="squeezenet1_1", device="cpu", precision="fp32", optimizer="adam"))
    found = measure(batches, step, Rules(seconds=0.1))
    assert found.samples == 4 * found.batches
    assert step._train.optimizer.state, "it trained"


@pytest.mark.parametrize(
    ("batch", "said"),
    [
        (make_dataclass("Pair", ["image", "mask"])(IMAGE[None], MASK[None]), "the second part of a batch is an int64"),
        (make_dataclass("Alone", ["image"])(IMAGE[None]), "batches have 1 part, without labels"),
        (Labeled, "batches are of type type, without labels"),
    ],
)
def test_a_dataclass_that_no_classifier_takes_is_named(batch: Any, said: str) -> None:
    assert said in why_no_classifier(batch)


@pytest.mark.parametrize("name", ["a dict", "segmentation"])
def test_training_that_was_asked_for_fails_with_what_the_batch_is(name: str) -> None:
    step = TrainingStep(StepOptions(model="squeezenet1_1", device="cpu"))
    with pytest.raises(TypeError, match="trains an image classifier, and ") as raised:
        step.consume(next(iter(loader(name))), 4)
    found = classify(f"TypeError: {raised.value}")
    assert found.kind == "not_for_a_classifier"
    assert "consumer.kind: target" in found.hint


@pytest.mark.parametrize(("kind", "made"), [("auto", ByFirstBatch), ("model", TrainingStep)])
def test_batches_decide_only_where_nobody_asked_for_training(
    monkeypatch: pytest.MonkeyPatch, kind: str, made: type
) -> None:
    monkeypatch.setattr(
        "loaderbench.consumers.training_step.TrainingStep.__init__", lambda self, *_, **__: _with_clock(self)
    )
    options = Suite.model_validate({"consumer": {"kind": kind, "model": "resnet18"}}).consumer
    assert type(make_consumer(options, "model", {}, Path(), lambda: 0.0)) is made


class Step:
    """A step that takes no time, of a device that is never busy."""

    def __init__(self) -> None:
        from loaderbench.consumers import HostWaitClock

        self.wait_clock = HostWaitClock()

    def consume(self, batch: Any, samples: int) -> None:
        assert why_no_classifier(batch) == ""


def _with_clock(step: Any) -> None:
    step.wait_clock = Step().wait_clock
