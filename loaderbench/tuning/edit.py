"""Shows the line of a script that creates a loader with other arguments, as a diff that is not applied."""

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
"""The positional arguments of torch's `DataLoader`, in order."""


def diff_of_call(at: CodeLine, changes: Config) -> str | None:
    """A unified diff that sets `changes` as keywords of the call at this line; `None` if there is no such call.

    Values that the script computes are replaced as well. A change to `None` adds no keyword. For classes other than
    `DataLoader`, whose parameters are unknown, only keywords that the call already has are set.
    """
    if at.by_library:
        return None
    try:
        source = Path(at.file).read_text(encoding="utf-8")
        edited = _edited(source, at.line, changes)
    except (OSError, ValueError, SyntaxError):  # the file is missing, or no longer contains the text that ran
        return None
    if edited is None or edited == source:
        return None
    name = Path(at.file).name
    lines = difflib.unified_diff(source.splitlines(), edited.splitlines(), name, f"{name}, tuned", n=1, lineterm="")
    return "\n".join(lines)


def _edited(source: str, line: int, changes: Mapping[str, Any]) -> str | None:
    call = _call_at(ast.parse(source), line)
    if call is None or any(keyword.arg is None for keyword in call.keywords):  # keywords passed with **
        return None
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return None
    text = _Text(source)
    given: dict[str | None, ast.expr] = {keyword.arg: keyword.value for keyword in call.keywords}
    is_torchs = _name(call.func) == _LOADER
    given |= dict(zip(POSITIONAL, call.args, strict=False)) if is_torchs else {}
    edits = []
    for name, value in changes.items():
        if (known := given.get(name)) is not None:
            end = text.place(known.end_lineno, known.end_col_offset)
            edits.append((text.place(known.lineno, known.col_offset), end, repr(value)))
    added = [f"{name}={value!r}" for name, value in changes.items() if name not in given and value is not None]
    if added and not is_torchs:
        return None
    if added:
        at = _end_of_arguments(source, call, text)
        edits.append((at, at, f", {', '.join(added)}"))
    for begin, end, new in sorted(edits, reverse=True):
        source = source[:begin] + new + source[end:]
    return source if _parses(source) else None


def _end_of_arguments(source: str, call: ast.Call, text: _Text) -> int:
    """The position after the last argument, including brackets around it."""
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
    """Converts positions in a source from line and UTF-8 byte offset, as in `ast`, to character positions."""

    def __init__(self, source: str) -> None:
        self._lines = [f"{line}\n" for line in source.split("\n")]  # lines as Python splits them

    def place(self, line: int | None, column: int | None) -> int:
        """The character position in the source."""
        before = self._lines[: (line or 1) - 1]
        own = self._lines[(line or 1) - 1].encode()[: column or 0].decode()
        return sum(map(len, before)) + len(own)


def _call_at(tree: ast.Module, line: int) -> ast.Call | None:
    """The one call that creates a loader and spans the line: of `DataLoader`, else of a name ending in `Loader`.

    Nested calls resolve to the innermost; `None` if two separate calls are possible.
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
            inner = [node for node in named if not any(_contains(node, other) for other in named)]
            return inner[0] if len(inner) == 1 else None
    return None


def _contains(outer: ast.Call, inner: ast.Call) -> bool:
    return outer is not inner and any(node is inner for node in ast.walk(outer))


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
