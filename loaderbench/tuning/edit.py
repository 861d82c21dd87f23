"""The line of a script that makes a loader, with other arguments: as a diff to read, not applied."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loaderbench.records import CodeLine, Config


def diff_of_call(at: CodeLine, changes: Config) -> str | None:
    """A unified diff that sets `changes` as keywords of the call at this line; `None` where there is no such call.

    A value that the script computes is replaced as well. `None` stands for leaving a keyword out.
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
    text = _Text(source)
    there = {keyword.arg: keyword for keyword in call.keywords}
    edits = []
    for name, value in changes.items():
        if (keyword := there.get(name)) is not None:
            end = text.place(keyword.value.end_lineno, keyword.value.end_col_offset)
            edits.append((text.place(keyword.value.lineno, keyword.value.col_offset), end, repr(value)))
    added = [f"{name}={value!r}" for name, value in changes.items() if name not in there and value is not None]
    if added:
        parts: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
        ends = [text.place(part.end_lineno, part.end_col_offset) for part in parts]
        edits.append((max(ends), max(ends), f", {', '.join(added)}"))
    for begin, end, new in sorted(edits, reverse=True):
        source = source[:begin] + new + source[end:]
    return source


class _Text:
    """Places in a source by line and by bytes of UTF-8 within it, as `ast` counts them."""

    def __init__(self, source: str) -> None:
        self._lines = source.splitlines(keepends=True)

    def place(self, line: int | None, column: int | None) -> int:
        """The character's number in the source."""
        before = self._lines[: (line or 1) - 1]
        own = self._lines[(line or 1) - 1].encode()[: column or 0].decode()
        return sum(map(len, before)) + len(own)


def _call_at(tree: ast.Module, line: int) -> ast.Call | None:
    """The call of a loader that spans the line, the innermost of several; its name ends in `Loader`."""
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and _name(node.func).endswith("Loader")
        and node.lineno <= line <= (node.end_lineno or node.lineno)
        and (node.args or node.keywords)
    ]
    return max(calls, key=lambda node: (node.lineno, node.col_offset), default=None)


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
