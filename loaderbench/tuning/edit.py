"""Shows the line of a script that creates a loader with other arguments, as a diff that is not applied."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loaderbench.code_places import CodeLine
from loaderbench.records import Config

_LOADER, _ARGUMENTS = "DataLoader", "TrainingArguments"
HUGGING_FACE = "transformers.trainer"
HUGGING_FACE_NAMES = {
    name: f"dataloader_{name}"
    for name in ("num_workers", "prefetch_factor", "persistent_workers", "pin_memory", "drop_last")
}
"""The names of a loader's arguments in Hugging Face's `TrainingArguments`."""

POSITIONAL = ("dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers")
"""The positional arguments of torch's `DataLoader`, in order."""


def diff_of_call(at: CodeLine, changes: Config) -> str | None:
    """A unified diff that sets `changes` as keywords of the call at this line; `None` if there is no such call.

    Values that the script computes are replaced as well. A change to `None` adds no keyword. For calls of unknown
    parameters, of another class or of a library, only keywords that the call already has are set. For a loader of
    Hugging Face's `Trainer`, the file's only `TrainingArguments` are changed. With `**`, a call can have keywords that
    are not in its text, so only those in its text can be set.
    """
    try:
        source = Path(at.file).read_text(encoding="utf-8")
        edited = _edited(source, _call_to_edit(ast.parse(source), at, changes))
    except (OSError, ValueError, SyntaxError):  # the file is missing, or no longer contains the text that ran
        return None
    if edited is None or edited == source:
        return None
    name = Path(at.file).name
    lines = difflib.unified_diff(source.splitlines(), edited.splitlines(), name, f"{name}, tuned", n=1, lineterm="")
    return "\n".join(lines)


@dataclass(frozen=True)
class _Edit:
    """A call, and the keywords to set in it. `positional` are names of its positional arguments, as far as known.

    `may_add`: keywords that the call does not have can be added.
    """

    call: ast.Call
    changes: Mapping[str, Any]
    positional: Sequence[str] = ()
    may_add: bool = False


def _call_to_edit(tree: ast.Module, at: CodeLine, changes: Config) -> _Edit | None:
    if at.library == HUGGING_FACE:
        return _edit_of_arguments(tree, changes)
    if at.library:
        call = _call_with(tree, at.line, [name for name, value in changes.items() if value is not None])
        return None if call is None else _Edit(call, changes)
    call = _call_at(tree, at.line)
    if call is None:
        return None
    is_torchs = _name(call.func) == _LOADER
    return _Edit(call, changes, POSITIONAL if is_torchs else (), may_add=is_torchs)


def _edit_of_arguments(tree: ast.Module, changes: Config) -> _Edit | None:
    """The file's only `TrainingArguments`, if they have all changed arguments of the loader."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _name(node.func).endswith(_ARGUMENTS)]
    if len(calls) != 1 or not changes.keys() <= HUGGING_FACE_NAMES.keys():
        return None
    return _Edit(calls[0], {HUGGING_FACE_NAMES[name]: value for name, value in changes.items()}, may_add=True)


def _edited(source: str, edit: _Edit | None) -> str | None:
    if edit is None:
        return None
    call = edit.call
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return None
    text = _Text(source)
    given: dict[str | None, ast.expr] = {keyword.arg: keyword.value for keyword in call.keywords}
    given |= dict(zip(edit.positional, call.args, strict=False))
    if None in given and not edit.changes.keys() <= given.keys():  # the others may be among those passed with **
        return None
    edits = []
    for name, value in edit.changes.items():
        if (known := given.get(name)) is not None:
            end = text.place(known.end_lineno, known.end_col_offset)
            edits.append((text.place(known.lineno, known.col_offset), end, repr(value)))
    added = [f"{name}={value!r}" for name, value in edit.changes.items() if name not in given and value is not None]
    if added and not edit.may_add:
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


def _call_with(tree: ast.Module, line: int, keywords: Collection[str]) -> ast.Call | None:
    """The innermost call that spans the line and has all these keywords."""
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and node.lineno <= line <= (node.end_lineno or node.lineno)
        and set(keywords) <= {keyword.arg for keyword in node.keywords}
    ]
    inner = [node for node in calls if not any(_contains(node, other) for other in calls)]
    return inner[0] if len(inner) == 1 else None


def _contains(outer: ast.Call, inner: ast.Call) -> bool:
    return outer is not inner and any(node is inner for node in ast.walk(outer))


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
