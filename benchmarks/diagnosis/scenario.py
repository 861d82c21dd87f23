"""What a scenario is: a loop or a sweep with one planted cause, and the words that follow from the cause."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Word = str | None
Mark = Callable[[str], AbstractContextManager[Any]]
"""`prof.stage`, or something that does nothing where the loop runs unprofiled."""
Step = Callable[[Any, Mark], None]


@dataclass(frozen=True)
class Expected:
    """The words that are right. Several only where the definitions leave more than one; the scenario says why."""

    bound: str
    stages: tuple[Word, ...]
    limits: tuple[Word, ...]

    def __str__(self) -> str:
        stages, limits = ("|".join(str(word or "-") for word in words) for words in (self.stages, self.limits))
        return f"{self.bound}/{stages}/{limits}"


def because_of(stages: str, limits: str) -> Expected:
    """Input-bound, by words that are separated by blanks."""
    return Expected("input", tuple(stages.split()), tuple(limits.split()))


HEALTHY = Expected("compute", (None, "none"), (None, "none"))


@dataclass(frozen=True)
class Loop:
    """One training loop. `loader` is called once, or for each epoch where `fresh`; `seconds` begin after warm-up.

    The file `ready` is made when they begin.
    """

    loader: Callable[[], Any]
    step: Step
    seconds: float = 3.0
    warmup: int = 10
    fresh: bool = False
    within: Callable[[], AbstractContextManager[Any]] = nullcontext
    ready: Path | None = None


@dataclass(frozen=True)
class Sweep:
    """One suite for `loaderbench run`, as YAML would hold it, with one value per axis.

    With a `budget`, stages are made free after the sweep, and fixes are tried in the rest of that time.
    """

    suite: Mapping[str, Any]
    axes: Mapping[str, Any]
    data: Callable[[], str] | None = None
    within: Callable[[], AbstractContextManager[Any]] = nullcontext
    budget: str | None = None


@dataclass(frozen=True)
class Scenario:
    """A planted cause. `fixes`: by remedy id, the arguments of `make` that remove it; `why` these words are right.

    `skip` returns why this machine cannot have the cause, or nothing.
    """

    name: str
    why: str
    make: Callable[..., Loop | Sweep]
    args: Mapping[str, Any]
    expected: Expected
    fixes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    skip: Callable[[], str | None] = lambda: None

    def build(self, fix: str | None = None) -> Loop | Sweep:
        return self.make(**{**self.args, **(self.fixes[fix] if fix else {})})
