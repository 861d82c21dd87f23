"""Targets that a suite names as `package.module:name`, looked up next to the suite first, then on `sys.path`."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import reduce
from pathlib import Path
from typing import Any

from loaderbench.errors import MissingError

ANY_KEYWORD = "**"
"""In place of the names of a target's keyword arguments, if it takes any."""


def find_target(name: str, folder: Path) -> Callable[..., Any]:
    """Import a target. Raises `MissingError` if it does not exist; exceptions of its module pass through."""
    module_name, _, attribute = name.partition(":")
    if sys.path[:1] != [str(folder)]:
        sys.path.insert(0, str(folder))
    try:
        module = importlib.import_module(module_name)
        _reject_another(name, module_name, folder)
    except ModuleNotFoundError as error:
        if error.name and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            problem = _hidden_folder(module_name, folder) or f"no module {error.name} next to the suite or on sys.path"
            raise MissingError(f"target {name}: {problem}") from None
        raise
    try:
        found = reduce(getattr, attribute.split("."), module)
    except AttributeError:
        near = get_close_matches(attribute, dir(module), n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise MissingError(f"target {name}: {Path(module.__file__ or '').name} has no {attribute}{hint}") from None
    if not callable(found):
        raise MissingError(f"target {name}: expected a callable, got {type(found).__name__}")
    return found


def file_of(name: str, folder: Path) -> Path | None:
    """The file of a target's module, without importing it; `None` if there is no Python file."""
    inside = Path(*name.partition(":")[0].split("."))
    for place in (folder, *map(Path, sys.path)):
        for file in (place / inside.with_suffix(".py"), place / inside / "__init__.py"):
            if file.is_file():
                return file
    return None


def _hidden_folder(module_name: str, folder: Path) -> str:
    """Explain that an installed package hides a folder without `__init__.py`, even one next to the suite.

    Empty if no package does.
    """
    top, *inside = module_name.split(".")
    found = getattr(sys.modules.get(top), "__file__", None)
    if not inside or not found or not (folder / top).is_dir() or Path(found).parent.samefile(folder / top):
        return ""
    return f"{found} hides the folder {top} next to the suite; add {top}/__init__.py, or rename the folder"


def _reject_another(name: str, module_name: str, folder: Path) -> None:
    """Raise `MissingError` if a module imported earlier hides the one next to the suite."""
    top, *_ = module_name.split(".")
    beside = [file for file in (folder / f"{top}.py", folder / top / "__init__.py") if file.is_file()]
    loaded = getattr(sys.modules[top], "__file__", None)
    if beside and not any(loaded and Path(loaded).samefile(file) for file in beside):
        hidden = f"{loaded or 'a built-in module'} hides the module {top} next to the suite"
        raise MissingError(f"target {name}: {hidden}; rename yours")


def call_target(target: Callable[..., Any], args: Mapping[str, Any], config: Mapping[str, Any]) -> tuple[Any, set[str]]:
    """Call a target with its arguments and the axes it has parameters for; also return the axes it took."""
    names = keywords_of(target)
    taken = {axis for axis in config if ANY_KEYWORD in names or axis in names}
    return target(**{**args, **{axis: config[axis] for axis in taken}}), taken


def keywords_of(target: Callable[..., Any]) -> frozenset[str]:
    """The names of the keyword arguments that a target takes; `ANY_KEYWORD` if it takes any.

    Empty if the target has no signature, like some compiled functions and classes.
    """
    try:
        parameters = inspect.signature(target).parameters.values()
    except ValueError:
        return frozenset()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return frozenset([ANY_KEYWORD])
    return frozenset(parameter.name for parameter in parameters if parameter.kind is not parameter.POSITIONAL_ONLY)
