"""Code around a loader: iterators that take its batches and hand them on, such as a generator that converts them."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from loaderbench.code_places import CodeFrame

_TRAINS = ("torch/autograd/__init__.py", "torch/autograd/graph.py", "torch/optim/", "torch/nn/modules/module.py")
"""Calls of these files: an iterator that trains is the training loop, and nothing around the loader."""


class Code(NamedTuple):
    """A function, by its file and the line of its definition."""

    file: str
    line: int


def iterators_around(stacks: Iterable[Sequence[CodeFrame]], loader: str) -> frozenset[Code]:
    """Generators, and methods `__next__`, in which the file `loader` was at work, and no model.

    `stacks` are those of the thread that takes the batches, the outermost call first.
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
    """Whether one of them is at work."""
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
    """For each line inside an iterator, where that is defined; nothing of a file that cannot be read."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return {}
    found: dict[int, int] = {}
    for function in ast.walk(tree):  # the outer ones first
        if isinstance(function, ast.FunctionDef):
            lines = range(function.lineno, (function.end_lineno or function.lineno) + 1)
            is_iterator = function.name == "__next__" or _yields(function)
            for line in lines:
                found.pop(line, None)
            found |= dict.fromkeys(lines, function.lineno) if is_iterator else {}
    return found


def _yields(function: ast.FunctionDef) -> bool:
    """Whether it is a generator itself, and not only one that is defined in it."""
    to_see: list[ast.AST] = list(function.body)
    while to_see:
        node = to_see.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            to_see += ast.iter_child_nodes(node)
    return False
