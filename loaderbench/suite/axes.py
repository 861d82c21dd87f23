"""Checks that pydantic cannot make: whether each axis and argument exists, and whether its values are valid."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import product
from typing import Any

from loaderbench.datasets import DatasetKind
from loaderbench.loaders import AUTO, AXIS, LOADER_BACKENDS, LoaderBackend, backends_of, loader_axes
from loaderbench.loaders.torch_loader import OBJECTS
from loaderbench.options import Check, beyond_limits, integer, nearest, shown
from loaderbench.ranks import MOST_RANKS, RANKS
from loaderbench.suite.model import Suite
from loaderbench.suite.problems import Problem
from loaderbench.suite.yaml_text import KeyPath

MAX_CONFIGURATIONS = 10_000
AUTO_VALUES = 6  # maximum number of values of an `auto` axis


def find_problems(suite: Suite) -> Iterator[Problem]:
    """Yield the problems of a suite with a valid shape."""
    backends = backends_of(suite.loader, suite.sweep)
    own = suite.dataset.option_axes()
    checks = {**loader_axes(backends.values()), **own}
    swept = {**checks, RANKS: integer(1, MOST_RANKS)}
    automatic = {AXIS, *(axis for backend in backends.values() for axis in backend.auto)}
    named = " or ".join(backend.display_name or name for name, backend in backends.items())
    yield from _dataset_problems(suite)
    for name, value in suite.loader.items():
        yield from _argument_problems(("loader", name), value, checks, named)
        if name in suite.sweep:
            yield Problem(("loader", name), "also an axis under sweep; remove one of the two", at_key=True)
    for axis, values in suite.sweep.items():
        if values == AUTO and axis not in automatic and (loaders := _automatic_in(axis)):
            what = f"auto needs one of these under loader: {', '.join(loaders)}; set it, or list the values"
            yield Problem(("sweep", axis), what)
        elif axis not in automatic or values != AUTO:
            known = "" if suite.dataset.takes_any_axis else named
            yield from _axis_problems(axis, values, swept, known, type(suite.dataset).model_fields)
    yield from _size_problems(suite.sweep, automatic)
    yield from _decoding_problems(suite, backends)
    yield from _combination_problems(suite)
    yield from _baseline_problems(suite, swept, backends, named)


def _dataset_problems(suite: Suite) -> Iterator[Problem]:
    """Yield options of the dataset that are missing, invalid, or set in two places."""
    for option, check in suite.dataset.option_axes().items():
        value, is_swept = getattr(suite.dataset, option), option in suite.sweep
        if value is None and option in suite.dataset.needed:
            if not is_swept:
                yield Problem(("dataset",), f"missing key {option}")
            continue
        yield from _value_problems(("dataset", option), value, check)
        if is_swept and value and option in suite.dataset.model_fields_set & suite.dataset.data_axes.keys():
            yield Problem(("dataset", option), "also an axis under sweep; remove one of the two", at_key=True)


def _baseline_problems(
    suite: Suite, checks: Mapping[str, Check], backends: Mapping[str, LoaderBackend], named: str
) -> Iterator[Problem]:
    """Yield values of the baseline that are invalid, or that no configuration of the run has."""
    fixed = dict(suite.loader)
    for backend in backends.values():
        fixed = {**backend.library_defaults, **fixed}
    fixed |= {option: getattr(suite.dataset, option) for option in suite.dataset.option_axes()}
    for axis, value in suite.baseline.items():
        if axis in suite.sweep:
            yield from _argument_problems(("baseline", axis), value, checks, named)
        elif axis in fixed and shown(fixed[axis]) != shown(value):
            what = f"is {shown(fixed[axis])} in every config; to compare it with {shown(value)}, add it under sweep"
            yield Problem(("baseline", axis), what, at_key=True)
        elif axis not in fixed:
            add = ("" if axis in checks else nearest(axis, suite.sweep)) or "; add it there"
            yield Problem(("baseline", axis), f"not an axis under sweep{add}", at_key=True)


def _decoding_problems(suite: Suite, backends: Mapping[str, LoaderBackend]) -> Iterator[Problem]:
    """Yield loaders that decode files by themselves, if only the dataset's own code can read it."""
    if suite.sweep.get(AXIS) == AUTO:
        return
    for name, backend in backends.items():
        if why := why_unreadable(backend, suite.dataset):
            yield Problem(("sweep" if AXIS in suite.sweep else "loader", AXIS), f"{name} {why}", at_key=True)


def _combination_problems(suite: Suite) -> Iterator[Problem]:
    """Yield dataset options that no configuration can combine; the plan drops single invalid combinations.

    Values that are invalid by themselves are left out: they have a problem of their own.
    """
    swept = {axis: values if isinstance(values, list) else [values] for axis, values in suite.sweep.items()}
    checks = suite.dataset.axes
    own = {axis: [one for one in swept[axis] if checks[axis](one) is None] for axis in swept if axis in checks}
    why = ""
    for cell in product(*own.values()):
        why = suite.dataset.with_axes(dict(zip(own, cell, strict=True))).why_not_together()
        if not why:
            return
    if why:
        yield Problem(("dataset",), f"{why}; drop one of them", at_key=True)


def why_unreadable(backend: LoaderBackend, dataset: DatasetKind) -> str:
    """Why a loader that reads files by itself cannot read a dataset; empty if it can."""
    if backend.decodes and not dataset.lists_images:
        return "decodes files by itself: it needs `kind: image_folder`, a named transform, and a CPU decoder"
    if backend.format and not dataset.lists_files:
        return f"reads files as {backend.format}: it needs `kind: image_folder`"
    if (backend.decodes or backend.format) and dataset.store is not None and not backend.reads_stores:
        return "reads local files only, not dataset.storage"
    return ""


def _argument_problems(path: KeyPath, value: Any, checks: Mapping[str, Check], named: str) -> Iterator[Problem]:
    name = str(path[-1])
    if name in checks:
        yield from _value_problems(path, value, checks[name])
    elif path[0] != "baseline":  # otherwise an axis of a user-defined target
        what = _not_in_a_suite(name) or f"unknown {named} argument{_hint(name, checks)}"
        yield Problem(path, what, at_key=True)


def _automatic_in(axis: str) -> list[str]:
    """The loaders for which this axis may be `auto`."""
    return [name for name, backend in LOADER_BACKENDS.items() if axis in backend.auto]


def _not_in_a_suite(name: str) -> str:
    """Why a suite cannot express an argument of a `DataLoader`; empty for all other arguments."""
    if name not in OBJECTS:
        return ""
    return "needs a Python object; return a DataLoader that has it from your own function (dataset.kind: target)"


def _hint(name: str, known: Iterable[str]) -> str:
    """The loaders that take an argument, if the suite's loaders do not; otherwise the nearest name."""
    owners = [loader for loader, backend in LOADER_BACKENDS.items() if name in backend.axes]
    return f"; an argument of loader: {', '.join(owners)}" if owners else nearest(name, known)


def _axis_problems(
    axis: str, values: Any, checks: Mapping[str, Check], named: str, options: Collection[str]
) -> Iterator[Problem]:
    """Yield the problems of one axis.

    `named` are the loaders whose arguments are known; empty if any axis can be a target's own. `options` are all
    options of the dataset, including those that cannot be an axis.
    """
    path: KeyPath = ("sweep", axis)
    if isinstance(values, dict):
        yield Problem(path, "expected a value or a list of values, got a mapping")
        return
    if values == []:
        yield Problem(path, "empty list; add the values to measure")
    if axis not in checks and not axis.isidentifier():
        name = axis.rpartition(".")[2]
        instead = f"; write {name}, without its section" if name in checks else ""
        yield Problem(path, f"not a valid argument name{instead}", at_key=True)
        return
    check = checks.get(axis, None if named else _scalar)
    if check is None:
        what = f"unknown axis; neither a {named} argument nor a dataset option{_hint(axis, checks)}"
        what = _not_in_a_suite(axis) or what
        if axis in options:
            what = "cannot be an axis; set one value under dataset"
        yield Problem(path, what, at_key=True)
        return
    yield from _equal_values(path, values if isinstance(values, list) else [])
    for index, value in enumerate(values if isinstance(values, list) else [values]):
        where = (*path, index) if isinstance(values, list) else path
        yield from _value_problems(where, value, check)


def _equal_values(path: KeyPath, values: list[Any]) -> Iterator[Problem]:
    """Yield values that are equal in Python, such as `0` and `false`, which would be one configuration."""
    seen: dict[Any, Any] = {}
    for index, value in enumerate(values):
        if isinstance(value, dict | list):
            continue
        first = seen.setdefault(value, value)
        if type(first) is not type(value):
            what = f"duplicate value: {shown(value)} equals {shown(first)} in Python; put one of them in quotes"
            yield Problem((*path, index), what)


def _size_problems(sweep: Mapping[str, Any], automatic: Collection[str]) -> Iterator[Problem]:
    """Yield a problem if there are too many configurations, counted without building them."""
    count = math.prod(
        AUTO_VALUES if axis in automatic and values == "auto" else _distinct(values) for axis, values in sweep.items()
    )
    if count > MAX_CONFIGURATIONS:
        what = f"{count:,} configs; the limit is {MAX_CONFIGURATIONS:,}"
        yield Problem(("sweep",), what)


def _distinct(values: Any) -> int:
    return len({repr(value) for value in values}) if isinstance(values, list) else 1


def _value_problems(path: KeyPath, value: Any, check: Check) -> Iterator[Problem]:
    if (what := check(value)) is not None:
        yield Problem(path, what)


def _scalar(value: Any) -> str | None:
    if isinstance(value, float) and not math.isfinite(value):  # from a Python caller; YAML rejects it earlier
        return f"expected a finite number, got {value!r}"
    return f"expected a single value, got {shown(value)}" if isinstance(value, dict | list) else beyond_limits(value)
