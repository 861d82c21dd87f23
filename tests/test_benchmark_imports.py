"""Benchmarks run outside of the tests, so a name that they import may go without a test failing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]


def imported(folder: str) -> Iterator[tuple[str, str]]:
    """Module and name of everything of the package that scripts of a folder import."""
    for file in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("loaderbench"):
                yield from ((node.module or "", name.name) for name in node.names)


def exists(module: str, name: str) -> bool:
    return hasattr(import_module(module), name) or find_spec(f"{module}.{name}") is not None


def test_all_that_benchmarks_and_examples_import_is_there() -> None:
    names = {*imported("benchmarks"), *imported("examples"), *imported("tests/gpu")}
    assert len(names) > 50
    assert sorted(f"{module}.{name}" for module, name in names if not exists(module, name)) == []
