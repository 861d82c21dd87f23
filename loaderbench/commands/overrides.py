"""Changes to a suite from command-line flags."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from loaderbench.errors import UsageError
from loaderbench.suite import LoadedSuite, Override, load_suite
from loaderbench.suite.load import TEXT_OPTIONS, kind_of_dataset
from loaderbench.suite.yaml_text import TextError, parse_text
from loaderbench.user_paths import expanded


def load_with_flags(
    file: Path, *, data: Path | None, axes: Sequence[str], measure: dict[str, Any], earlier: Sequence[Override] = ()
) -> LoadedSuite:
    """Load a suite with `--data`, `-P` and the flags of `measure` applied on top of `earlier` overrides.

    Raises `SuiteError` and `UsageError`.
    """
    overrides = [*earlier, *_distinct(map(_axis, axes))]
    if data is not None:
        overrides.append(Override(("dataset", "root"), str(expanded(str(data)).resolve()), f"--data {data}"))
    for name, value in measure.items():
        if value is not None:
            overrides.append(Override(("measure", name), value, f"--{name.replace('_', '-')} {value}"))
    kind = None if data is None else kind_of_dataset(file, overrides)
    if kind is not None and "root" not in kind.model_fields:
        raise UsageError("--data: this suite's dataset.kind takes no folder; remove --data")
    return load_suite(file, overrides)


def _distinct(axes: Iterable[Override]) -> list[Override]:
    """The same axes. Raises `UsageError` if one was given twice, because the last one would replace the others."""
    given: dict[str, Override] = {}
    for axis in axes:
        name = str(axis.path[-1])
        if name in given:
            raise UsageError(f"{axis.flag}: {name} was already given by {given[name].flag}; list all values in one -P")
        given[name] = axis
    return list(given.values())


def _axis(text: str) -> Override:
    """Parse an axis such as `num_workers=0,2,4`. Values are in YAML notation; `auto` must be the only value."""
    flag = f"-P {text}"
    axis, equals, values = text.partition("=")
    axis = axis.strip()
    if not equals or not axis or not values.strip():
        raise UsageError(f"{flag}: expected AXIS=V1,V2, e.g. -P num_workers=0,2,4")
    if values.strip() == "auto":
        return Override(("sweep", axis), "auto", flag)
    try:
        found = parse_text(f"[{values}]", as_text=axis in TEXT_OPTIONS).value  # a folder can be named 01 or 1e5
        return Override(("sweep", axis), found, flag)
    except TextError as error:
        raise UsageError(f"{flag}: {error.what}") from None
