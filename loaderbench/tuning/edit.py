"""The line of a script that makes a loader, with other arguments: as a diff to read, not applied."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loaderbench.code_places import CodeLine
from loaderbench.records import Config

_LOADER = "DataLoader"
POSITIONAL = ("dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers")
"""Those of torch's `DataLoader`, in its order."""


def diff_of_call(at: CodeLine, changes: Config) -> str | None:
    """A unified diff that sets `changes` as keywords of the call at this line; `None` where there is no such call.

    A value that the script computes is replaced as well. `None` adds no keyword. What a class other than `DataLoader`
    accepts is unknown, so only keywords that the call already has are set.
    """
    if at.by_library:
        return None
    try:
        source = Path(at.file).read_text(encoding="utf-8")
        edited = _edited(source, at.line, changes)
    except (OSError, ValueError, SyntaxError):  # gone, or not the text that ran
        return None
    if edited is None or edited == source:
        return None
    name = Path(at.file).name
    lines = difflib.unified_diff(source.splitlines(), edited.splitlines(), name, f"{name}, tuned", n=1, lineterm="")
    return "\n".join(lines)


def _edited(source: str, line: int, changes: Mapping[str, Any]) -> str | None:
    call = _call_at(ast.parse(source), line)
    if call is None or any(keyword.arg is None for keyword in call.keywords):  # its keywords are elsewhere
        return None
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return None
    text = _Text(source)
    there: dict[str | None, ast.expr] = {keyword.arg: keyword.value for keyword in call.keywords}
    is_torchs = _name(call.func) == _LOADER
    there |= dict(zip(POSITIONAL, call.args, strict=False)) if is_torchs else {}
    edits = []
    for name, value in changes.items():
        if (known := there.get(name)) is not None:
            end = text.place(known.end_lineno, known.end_col_offset)
            edits.append((text.place(known.lineno, known.col_offset), end, repr(value)))
    added = [f"{name}={value!r}" for name, value in changes.items() if name not in there and value is not None]
    if added and not is_torchs:
        return None
    if added:
        at = _end_of_arguments(source, call, text)
        edits.append((at, at, f", {', '.join(added)}"))
    for begin, end, new in sorted(edits, reverse=True):
        source = source[:begin] + new + source[end:]
    return source if _parses(source) else None


def _end_of_arguments(source: str, call: ast.Call, text: _Text) -> int:
    """Behind the last argument, and behind the brackets around it."""
    parts: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    last = max(text.place(part.end_lineno, part.end_col_offset) for part in parts)
    between = source[last : text.place(call.end_lineno, call.end_col_offset) - 1]
    return last + between.rindex(")") + 1 if ")" in between and "#" not in between else last


def _parses(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


class _Text:
    """Places in a source by line and by bytes of UTF-8 within it, as `ast` counts them."""

    def __init__(self, source: str) -> None:
        self._lines = [f"{line}\n" for line in source.split("\n")]  # as Python divides it

    def place(self, line: int | None, column: int | None) -> int:
        """The character's number in the source."""
        before = self._lines[: (line or 1) - 1]
        own = self._lines[(line or 1) - 1].encode()[: column or 0].decode()
        return sum(map(len, before)) + len(own)


def _call_at(tree: ast.Module, line: int) -> ast.Call | None:
    """The one call of a loader that spans the line: of `DataLoader`, else of a name that ends so.

    Of several, the innermost of those that begin on the line alone; `None` where it could be either of two.
    """
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and _name(node.func).endswith("Loader")
        and node.lineno <= line <= (node.end_lineno or node.lineno)
        and (node.args or node.keywords)
    ]
    for ending in (_LOADER, "Loader"):
        named = [node for node in calls if _name(node.func).endswith(ending)]
        if named:
            inner = [node for node in named if not any(_holds(node, other) for other in named)]
            return inner[0] if len(inner) == 1 else None
    return None


def _holds(outer: ast.Call, inner: ast.Call) -> bool:
    return outer is not inner and any(node is inner for node in ast.walk(outer))


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
