"""Checks of single option values, and the base types of a suite's sections."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from loaderbench.records.words import OUT_OF_RANGE, out_of_range

Check = Callable[[Any], "str | None"]
"""Returns the problem with a value, or `None`."""

MAX_BITS = 63  # of an integer without its sign, the most that torch can represent
_Value = TypeVar("_Value")
_TARGET = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def nearest(word: object, words: Iterable[str]) -> str:
    """`; did you mean X?`, or nothing if no word is close."""
    match = get_close_matches(str(word), list(words), n=1)
    return f"; did you mean {match[0]}?" if match else ""


def shown(value: object) -> str:
    """Format a value as in YAML; a list or mapping only by its kind."""
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        return f"an integer of {value.bit_length():,} bits"  # Python refuses to format very long ones
    return repr(value)


def not_one_of(value: object, names: Sequence[str]) -> str:
    """The message for a value that is not one of these names."""
    listed = " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    return f"expected {listed}, got {shown(value)}{nearest(value, names)}"


def integer(least: int, most: int, *, or_null: bool = False) -> Check:
    """Accept whole numbers from `least` to `most`."""

    def check(value: Any) -> str | None:
        if (value is None and or_null) or (type(value) is int and least <= value <= most):
            return None
        return f"expected an integer from {least:,} to {most:,}, got {shown(value)}"

    return check


def beyond_limits(value: object) -> str | None:
    """Accept everything but a number that is too large or too small to be saved in a run."""
    if isinstance(value, int):
        return f"integer of more than {MAX_BITS} bits" if value.bit_length() > MAX_BITS else None
    return f"{OUT_OF_RANGE}, got {value!r}" if isinstance(value, float) and out_of_range(value) else None


def within_limits(value: _Value) -> _Value:
    """The value itself. Raises `ValueError` for a number that cannot be saved in a run."""
    if what := beyond_limits(value):
        raise ValueError(what)
    return value


def number(value: Any) -> str | None:
    """Accept finite numbers of 0 or more."""
    if type(value) in {int, float} and 0 <= value < float("inf"):
        return beyond_limits(value)
    return f"expected a number of 0 or more, got {shown(value)}"


def boolean(value: Any) -> str | None:
    """Accept `true` and `false`."""
    return None if isinstance(value, bool) else f"expected true or false, got {shown(value)}"


def text(value: Any) -> str | None:
    """Accept text."""
    return None if isinstance(value, str) and value else f"expected a string, got {shown(value)}"


def text_or_null(value: Any) -> str | None:
    """Accept text, which can be empty, and null."""
    return None if value is None or isinstance(value, str) else f"expected a string or null, got {shown(value)}"


def one_of(*names: str | None) -> Check:
    """Accept the names given."""

    def check(value: Any) -> str | None:
        if value in names:
            return None
        return not_one_of(value, ["null" if name is None else name for name in names])

    return check


def target_name(value: Any) -> str | None:
    """Accept `package.module:name`."""
    if isinstance(value, str) and _TARGET.fullmatch(value):
        return None
    return f"expected package.module:name, got {shown(value)}"


def _valid_target_name(value: str) -> str:
    if what := target_name(value):
        raise ValueError(what)
    return value


Count = Annotated[int, Field(gt=0), AfterValidator(within_limits)]
Amount = Annotated[float, Field(gt=0, allow_inf_nan=False), AfterValidator(within_limits)]
Seed = Annotated[int, Field(ge=0, le=2**32)]  # torch accepts 64 bits, and each round adds one
TargetName = Annotated[str, AfterValidator(_valid_target_name)]


class Part(BaseModel):
    """A mapping of keys in a suite. Strict: text is not converted to a number, and an unknown key is an error."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)
