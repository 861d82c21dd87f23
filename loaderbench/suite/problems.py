"""Describes the problems of a suite in plain words, including pydantic's validation errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from loaderbench.datasets import DATASET_KINDS
from loaderbench.options import nearest, not_one_of, shown
from loaderbench.suite.model import Suite
from loaderbench.suite.yaml_text import KeyPath

_NEEDED = {
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "string_type": "a string",
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "finite_number": "a finite number",
}

_LIMITS = {
    "greater_than": ("gt", "a value greater than {}"),
    "greater_than_equal": ("ge", "{} or more"),
    "less_than_equal": ("le", "{} or less"),
    "string_too_short": ("min_length", "a string of {} or more characters"),
}
"""The expectation that a value violates, and the name of its limit in pydantic's context."""


@dataclass(frozen=True)
class Problem:
    """A problem at a key (`at_key`) or at its value."""

    path: KeyPath
    what: str
    at_key: bool = False


def problem_of(detail: ErrorDetails) -> Problem:
    """Convert a pydantic error to a problem in this program's words."""
    path, kind, given = _without_tag(detail["loc"]), detail["type"], detail["input"]
    if kind == "extra_forbidden":
        return Problem(path, _of_another_kind(path) or _unknown_key(path, detail["loc"]), True)
    if kind == "missing":
        return Problem(path[:-1], f"missing key {path[-1]}")
    if kind == "union_tag_invalid":
        given, words = given["kind"], [*DATASET_KINDS]
        return Problem((*path, "kind"), not_one_of(given, words))
    if kind == "literal_error":
        return Problem(path, not_one_of(given, _words(_part(path, detail["loc"]))))
    return Problem(path, _what_is_wrong(detail))


def _of_another_kind(path: KeyPath) -> str:
    """The kinds of dataset that have this option; empty if none has it."""
    owners = [kind for kind, found in DATASET_KINDS.items() if path in {("dataset", key) for key in found.model_fields}]
    return f"belongs to `kind: {' or '.join(owners)}`; set that kind, or remove the key" if owners else ""


def _unknown_key(path: KeyPath, loc: KeyPath) -> str:
    words = [*getattr(_part(path[:-1], loc), "model_fields", {})]
    return f"unknown key{nearest(path[-1], words) or '; valid keys: ' + ', '.join(words)}"


def _part(path: KeyPath, loc: KeyPath) -> Any:
    """The type of a section or value of a suite; for the dataset, that of the kind named in `loc`."""
    part: Any = Suite
    for key in path:
        part = DATASET_KINDS[str(loc[1])] if part is Suite and key == "dataset" else _field(part, str(key))
    return part


def _field(part: type[BaseModel], name: str) -> Any:
    return part.model_fields[name].annotation


def _words(declared: Any) -> list[str]:
    """The literal values that a type allows, also inside a union."""
    if get_origin(declared) is Literal:
        return [str(word) for word in get_args(declared)]
    return [word for part in get_args(declared) for word in _words(part)]


def _what_is_wrong(detail: ErrorDetails) -> str:
    """Describe the problem of a value at a valid key."""
    kind, given = detail["type"], detail["input"]
    if kind in _NEEDED:
        return f"expected {_NEEDED[kind]}, got {shown(given)}"
    if kind in _LIMITS:
        name, needed = _LIMITS[kind]
        return f"expected {needed.format(format(detail['ctx'][name], ',.15g'))}, got {shown(given)}"
    if kind == "value_error":
        return detail["msg"].removeprefix("Value error, ")
    return f"invalid value {shown(given)}: {detail['msg'].lower()}"


def _without_tag(loc: KeyPath) -> KeyPath:
    """Remove the tag that pydantic adds to a location for the branch of a union."""
    tagged = len(loc) > 1 and loc[0] == "dataset" and loc[1] in DATASET_KINDS
    return (loc[0], *loc[2:]) if tagged else loc
