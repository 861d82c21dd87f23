"""What the options of a suite may hold: checks of single values, and the types that its parts are made of."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

Check = Callable[[Any], "str | None"]
"""What is wrong with a value, or `None`."""

_TARGET = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def nearest(word: object, words: Iterable[str]) -> str:
    """`; did you mean X?`, or nothing where no word is near."""
    match = get_close_matches(str(word), list(words), n=1)
    return f"; did you mean {match[0]}?" if match else ""


def integer(least: int, most: int, *, or_null: bool = False) -> Check:
    """Accept whole numbers from `least` to `most`."""

    def check(value: Any) -> str | None:
        if (value is None and or_null) or (type(value) is int and least <= value <= most):
            return None
        return f"{value!r} is not a whole number of {least} to {most}"

    return check


def number(value: Any) -> str | None:
    """Accept finite numbers of 0 or more."""
    if type(value) in {int, float} and 0 <= value < float("inf"):
        return None
    return f"{value!r} is not a number of 0 or more"


def boolean(value: Any) -> str | None:
    """Accept `true` and `false`."""
    return None if isinstance(value, bool) else f"{value!r} is neither true nor false"


def text(value: Any) -> str | None:
    """Accept text."""
    return None if isinstance(value, str) and value else f"{value!r} is not a text"


def one_of(*names: str | None) -> Check:
    """Accept the names given."""

    def check(value: Any) -> str | None:
        shown = ", ".join("null" if name is None else name for name in names)
        if value in names:
            return None
        return f"{value!r} is not one of {shown}{nearest(value, [name for name in names if name])}"

    return check


def _target_name(value: str) -> str:
    if not _TARGET.fullmatch(value):
        raise ValueError(f"{value!r} is not of the form package.module:name")
    return value


Count = Annotated[int, Field(gt=0)]
Amount = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Seed = Annotated[int, Field(ge=0, le=2**32)]  # torch takes 64 bits, and each round adds one
TargetName = Annotated[str, AfterValidator(_target_name)]


class Part(BaseModel):
    """A mapping of keys in a suite. Strict: text is not converted to a number, and an unknown key is an error."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)
