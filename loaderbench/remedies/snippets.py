"""The text to paste: Python for a training script, YAML for the suite."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loaderbench.records import Config, format_scalar
from loaderbench.suite.arguments import LOADER_ARGUMENTS, NEEDS_WORKERS


def python_snippet(config: Config, loader: Mapping[str, Any]) -> str:
    """A `DataLoader` over the user's `dataset`, with every argument that was measured."""
    arguments = {**loader, **config}
    inside = {name: value for name, value in arguments.items() if name in LOADER_ARGUMENTS and _stated(name, value)}
    outside = {name: value for name, value in arguments.items() if name not in LOADER_ARGUMENTS}
    comments = [f"# the dataset was made with {name}={value!r}" for name, value in outside.items()]
    lines = [f"    {name}={value!r}," for name, value in inside.items()]
    return "\n".join(
        ["from torch.utils.data import DataLoader", "", *comments, "loader = DataLoader(", "    dataset,", *lines, ")"]
    )


def yaml_snippet(config: Config) -> str:
    """The same as fixed arguments of a suite."""
    inside = [f"  {name}: {format_scalar(value)}" for name, value in config.items() if name in LOADER_ARGUMENTS]
    outside = [f"  {name}: {format_scalar(value)}" for name, value in config.items() if name not in LOADER_ARGUMENTS]
    return "\n".join([*(["loader:", *inside] if inside else []), *(["dataset:", *outside] if outside else [])])


def _stated(name: str, value: Any) -> bool:
    """Leave out what stands for "not given" without workers."""
    return name not in NEEDS_WORKERS or value != NEEDS_WORKERS[name]
