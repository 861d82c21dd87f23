"""Checks that the options that set the demand fit together, and that a rate is published for them."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel

from loaderbench.consumers import AUTO, CONSUMER_KINDS, NoRateError, assumed_demand
from loaderbench.suite.problems import Problem


def find_demand_problems(consumer: BaseModel) -> Iterator[Problem]:
    """Yield what is wrong with `demand`, `accelerator`, `model` and `precision` taken together."""
    given = {name: getattr(consumer, name) for name in ("kind", "demand", "accelerator", "precision")}
    if given["accelerator"] is None:
        if given["precision"] is not None:
            yield _problem("precision", "has no effect without `accelerator`; set both, or drop it")
        return
    if given["kind"] not in (AUTO, *_emulating()):
        yield _problem("accelerator", f"has no effect on `kind: {given['kind']}`; use `kind: emulated`, or drop it")
    if given["demand"] is not None:
        yield _problem("accelerator", "cannot be combined with `demand`: both set the target; drop one of them")
    try:
        assumed_demand(consumer)
    except NoRateError as error:
        yield Problem(("consumer", error.option), str(error))


def _problem(option: str, what: str) -> Problem:
    return Problem(("consumer", option), what, at_key=True)


def _emulating() -> Iterator[str]:
    return (name for name, kind in CONSUMER_KINDS.items() if kind.asked_for_by == "accelerator")
