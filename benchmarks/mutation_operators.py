"""The changes that benchmarks/mutation.py makes: some of cosmic-ray's operators, and a few similar ones."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import parso
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator

OF_COSMIC_RAY = (
    *("AddNot", "RemoveDecorator", "ZeroIterationForLoop"),
    *("ReplaceAndWithOr", "ReplaceOrWithAnd", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue"),
    *("ReplaceBreakWithContinue", "ReplaceContinueWithBreak"),
    *("ReplaceUnaryOperator_Delete_Not", "ReplaceUnaryOperator_Delete_USub"),
    *(f"ReplaceBinaryOperator_{pair}" for pair in ("Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul")),
    *(f"ReplaceBinaryOperator_{pair}" for pair in ("FloorDiv_Mul", "Mod_Mul", "Pow_Mul")),
    *(f"ReplaceComparisonOperator_{pair}" for pair in ("Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt")),
    *(f"ReplaceComparisonOperator_{pair}" for pair in ("Lt_GtE", "LtE_Gt", "Gt_LtE", "GtE_Lt")),
    *(f"ReplaceComparisonOperator_{pair}" for pair in ("Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is")),
)
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "reversed": "list", "sorted": "list", "abs": "float"}
SMALL = 100
"""Integers below this are changed by one up and down; others and fractions are halved and doubled."""


_COMPOUND = ("if_stmt", "for_stmt", "while_stmt", "with_stmt", "try_stmt", "funcdef", "classdef", "decorated")


@dataclass(frozen=True)
class Mutant:
    """One change: its position, the lines of its statement, what it replaces (complete lines), and the changed file."""

    file: Path
    line: int
    lines: range
    was: str
    becomes: str
    source: str


def mutants_of(file: Path) -> Iterator[Mutant]:
    """Yield every change to a file, in line order."""
    source = file.read_text(encoding="utf-8")
    found = [mutant for operator in _operators() for mutant in _mutants(file, source, operator)]
    yield from sorted(found, key=lambda mutant: (mutant.line, mutant.becomes))


def _operators() -> list[Any]:
    return [*(get_operator(f"core/{name}")() for name in OF_COSMIC_RAY), *(one() for one in OURS)]


def _mutants(file: Path, source: str, operator: Any) -> Iterator[Mutant]:
    places = ((node, start) for node in ast_nodes(get_ast(source)) for start, _ in operator.mutation_positions(node))
    for occurrence, (node, (line, _)) in enumerate(places):
        mutated = mutate_code(source, operator, occurrence)
        was, becomes = _changed_lines(source, mutated)
        if not _says_nothing(was, becomes) and _is_python(mutated):
            yield Mutant(file, line, _lines_of_statement(node, line), was, becomes, mutated)


def _says_nothing(was: str, becomes: str) -> bool:
    """Whether a change has no meaning: checks that no input reaches, type-checker imports, keyword-only markers."""
    says_same = (was.replace("strict=True", "strict=False"), was.replace("*, ", "/, "))
    return "TYPE_CHECKING" in was or becomes in says_same


def _is_python(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


def _changed_lines(before: str, after: str) -> tuple[str, str]:
    """The lines in which two texts differ, between their common start and end."""
    one, other = before.splitlines(), after.splitlines()
    start = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    one, other = one[start:], other[start:]
    while one and other and one[-1] == other[-1]:
        one.pop(), other.pop()
    return _bare(one), _bare(other)


def _bare(lines: list[str]) -> str:
    """Join code on one line, without its comments."""
    return " ".join(re.sub(r"(^|\s+)# .*$", "", line).strip() for line in lines)


def _lines_of_statement(node: Any, line: int) -> range:
    """The lines of the statement that contains a node; of a compound statement, only its header."""
    while node.parent is not None and node.type not in ("simple_stmt", *_COMPOUND):
        node = node.parent
    last = node.end_pos[0] if node.type == "simple_stmt" else line
    return range(node.start_pos[0], last + 1)


class Number(Operator):
    """Change a number by a little, up and down."""

    def mutation_positions(self, node: Any) -> Iterator[Any]:
        if node.type == "number":
            yield from [(node.start_pos, node.end_pos)] * 2

    def mutate(self, node: Any, index: int) -> Any:
        value = _value(node.value)
        if isinstance(value, int) and value < SMALL:
            changed = (value + 1, value - 1)[index]
        else:
            changed = (value * 2, value // 2 if isinstance(value, int) else value / 2)[index]
        return parso.python.tree.Number(str(changed), node.start_pos, node.prefix)

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()


def _value(text: str) -> float:
    text = text.replace("_", "")
    return float(text) if any(mark in text for mark in ".eE") and not text.startswith("0x") else int(text, 0)


class Name(Operator):
    """Replace a function with its opposite (`min` with `max`), or remove it (`reversed`)."""

    def mutation_positions(self, node: Any) -> Iterator[Any]:
        if node.type == "name" and node.value in NAMES and node.parent.type not in ("param", "import_from"):
            after = node.get_next_sibling()
            named = node.parent.type == "argument" and after is not None and after.type == "operator"
            if not named and not (node.get_previous_leaf() and node.get_previous_leaf().value == "."):
                yield node.start_pos, node.end_pos

    def mutate(self, node: Any, _index: int) -> Any:
        return parso.python.tree.Name(NAMES[node.value], node.start_pos, node.prefix)

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()


class Statement(Operator):
    """Remove a call whose result is unused."""

    def mutation_positions(self, node: Any) -> Iterator[Any]:
        if node.type == "simple_stmt" and node.children[0].type == "atom_expr":
            call = node.children[0]
            if call.children[-1].type == "trailer" and call.children[-1].children[0].value == "(":
                yield call.start_pos, call.end_pos

    def mutate(self, node: Any, _index: int) -> Any:
        call = node.children[0]
        node.children[0] = parso.python.tree.Keyword("pass", call.start_pos, call.get_first_leaf().prefix)
        return node

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()


class Filter(Operator):
    """Invert the condition of a comprehension."""

    def mutation_positions(self, node: Any) -> Iterator[Any]:
        if node.type == "comp_if":
            yield node.children[1].start_pos, node.children[1].end_pos

    def mutate(self, node: Any, _index: int) -> Any:
        node.children[1] = parso.parse(f" not ({node.children[1].get_code().strip()})")
        return node

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()


class Handler(Operator):
    """Stop catching an exception."""

    def mutation_positions(self, node: Any) -> Iterator[Any]:
        if node.type == "except_clause":
            yield node.children[1].start_pos, node.children[1].end_pos

    def mutate(self, node: Any, _index: int) -> Any:
        node.children[1] = parso.parse(" ZeroDivisionError")
        return node

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()


OURS = (Handler, Number, Name, Statement, Filter)
