"""Finds code around a loader: iterators that consume its batches and yield them, such as a converting generator."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from loaderbench.code_places import CodeFrame

_TRAINS = ("torch/autograd/__init__.py", "torch/autograd/graph.py", "torch/optim/", "torch/nn/modules/module.py")
"""Files of calls that train: an iterator that makes such calls is the training loop, not code around the loader."""


class Code(NamedTuple):
    """A function, identified by its file and the line of its definition."""

    file: str
    line: int


def iterators_around(stacks: Iterable[Sequence[CodeFrame]], loader: str) -> frozenset[Code]:
    """Generators and `__next__` methods that were seen to call the file `loader`, but no model.

    `stacks` are those of the thread that takes the batches, outermost call first.
    """
    around: set[Code] = set()
    train: set[Code] = set()
    for frames in stacks:
        place = next((i for i, frame in enumerate(frames) if frame.file.endswith(loader)), None)
        if place is not None:
            around |= set(_iterators(frames[:place]))
        elif any(_is_training(frame.file) for frame in frames):
            train |= set(_iterators(frames))
    return frozenset(around - train)


def is_within(frames: Sequence[CodeFrame], iterators: frozenset[Code]) -> bool:
    """Whether one of these iterators is in the stack."""
    return bool(iterators) and any(code in iterators for code in _iterators(frames))


def _iterators(frames: Iterable[CodeFrame]) -> Iterator[Code]:
    for frame in frames:
        line = _definitions(frame.file).get(frame.line)
        if line is not None:
            yield Code(frame.file, line)


def _is_training(file: str) -> bool:
    return any(part in file for part in _TRAINS)


@lru_cache(maxsize=256)
def _definitions(file: str) -> dict[int, int]:
    """For each line inside an iterator, the line of its definition; empty if the file cannot be read."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return {}
    found: dict[int, int] = {}
    for function in ast.walk(tree):  # outer functions come first
        if isinstance(function, ast.FunctionDef):
            lines = range(function.lineno, (function.end_lineno or function.lineno) + 1)
            is_iterator = function.name == "__next__" or _yields(function)
            for line in lines:
                found.pop(line, None)
            found |= dict.fromkeys(lines, function.lineno) if is_iterator else {}
    return found


def _yields(function: ast.FunctionDef) -> bool:
    """Whether the function itself is a generator, rather than only a function nested in it."""
    to_see: list[ast.AST] = list(function.body)
    while to_see:
        node = to_see.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            to_see += ast.iter_child_nodes(node)
    return False
