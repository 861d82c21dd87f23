"""Consumer kinds: which one `auto` picks, when one is refused, and which options each takes."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from loaderbench.consumers import CONSUMER_KINDS, LOOP, ConsumerKind, consumer_kind, consumer_of, resolve_consumer
from loaderbench.errors import MissingError
from loaderbench.suite import Suite


def section(**options: Any) -> BaseModel:
    """The section `consumer` of a suite."""
    return Suite.model_validate({"consumer": options}).consumer


@pytest.mark.parametrize(("accelerator", "kind"), [(True, "model"), (False, "emulated")])
def test_auto_is_one_kind_with_an_accelerator_and_one_without(accelerator: bool, kind: str) -> None:
    assert resolve_consumer(section(kind="auto"), accelerator=accelerator) == kind


@pytest.mark.parametrize("accelerator", [True, False])
def test_auto_emulates_a_gpu_that_is_named_even_beside_a_real_one(accelerator: bool) -> None:
    assert resolve_consumer(section(kind="auto", accelerator="a100"), accelerator=accelerator) == "emulated"
    assert resolve_consumer(section(kind="none"), accelerator=accelerator) == "none"


def test_a_kind_that_needs_an_accelerator_is_refused_without_one() -> None:
    assert resolve_consumer(section(kind="model"), accelerator=True) == "model"
    with pytest.raises(MissingError, match=r"consumer\.kind: model needs a CUDA device"):
        resolve_consumer(section(kind="model"), accelerator=False)


def test_of_a_kind_that_is_not_registered_here_is_said_what_holds_of_any() -> None:
    assert consumer_kind("of_another_version") is ConsumerKind
    assert consumer_kind("of_another_version").who == "consumer"


def test_a_loop_is_no_kind_that_a_suite_can_name() -> None:
    assert consumer_kind(LOOP).of_loop
    assert LOOP not in CONSUMER_KINDS


def test_a_consumer_gets_its_own_options_of_the_section() -> None:
    options = section(demand=7.0, model="resnet18")
    emulated = {"demand": 7.0, "accelerator": None, "model": "resnet18", "precision": None}
    assert consumer_of(options, "emulated").model_dump() == emulated
    assert consumer_of(options, "model").model_dump() == {"model": "resnet18"}
