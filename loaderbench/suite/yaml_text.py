"""Parses YAML 1.2 to plain values, with the position of every key and value.

Only the node graph of ruamel.yaml is used. Nothing is constructed from a tag, so no file can create an object.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from loaderbench.errors import printable
from loaderbench.options import beyond_limits

KeyPath = tuple[str | int, ...]

MAX_DEPTH = 20  # a suite needs four
MAX_NODES = 10_000  # an alias bomb needs more
_UNREADABLE = (YAMLError, ValueError, LookupError, ArithmeticError, RecursionError)  # errors that ruamel.yaml raises
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_MARKS = "{}[],"  # these end a plain scalar inside { } and [ ]
_PLACEHOLDERS = "".join(chr(0xF8E0 + index) for index in range(len(_MARKS)))  # from the private use area
_HIDE, _SHOW = str.maketrans(_MARKS, _PLACEHOLDERS), str.maketrans(_PLACEHOLDERS, _MARKS)
_CORE = "tag:yaml.org,2002:"
_KINDS = {"map": "a mapping", "seq": "a list", "int": "an integer", "float": "a number", "bool": "true or false"}
_TAGS = {"map", "seq", "int", "float", "bool", "null", "str", "timestamp"}


@dataclass(frozen=True)
class Position:
    """A place in a file; `line` and `column` count from 1."""

    line: int
    column: int


class TextError(Exception):
    """A problem of the text and its position; `what` is one line."""

    def __init__(self, what: str, position: Position, path: KeyPath = ()) -> None:
        super().__init__(what)
        self.what, self.position, self.path = printable(what), position, path


@dataclass
class ParsedText:
    """The plain value of a text, and the positions of its keys and values."""

    value: Any
    keys: dict[KeyPath, Position] = field(default_factory=dict)
    values: dict[KeyPath, Position] = field(default_factory=dict)


def parse_text(
    text: str, texts: Collection[KeyPath] = (), replaced: Collection[KeyPath] = (), *, as_text: bool = False
) -> ParsedText:
    """Parse one YAML document. Raises `TextError`.

    At `texts`, and in lists there, the value of a variable stays text. At `replaced`, variables are not substituted,
    because an override replaces or drops the value. With `as_text`, every number and boolean stays the text it was.
    """
    yaml = YAML(typ="safe", pure=True)
    try:
        root = yaml.compose(_with_variables_hidden(text))
    except MarkedYAMLError as error:
        what = str(error.problem or error.context).translate(_SHOW)
        raise TextError(f"not valid YAML: {what}", _mark(error)) from None
    except _UNREADABLE as error:
        first = str(error).splitlines() or [type(error).__name__]
        raise TextError(f"not valid YAML: {first[0]}", Position(1, 1)) from None
    if root is None:
        raise TextError("empty; `loaderbench init` writes a suite", Position(1, 1))
    return _Reader(yaml, texts, replaced, as_text=as_text).read(root)


class _Reader:
    """Converts the node graph to plain values."""

    def __init__(self, yaml: YAML, texts: Collection[KeyPath], replaced: Collection[KeyPath], *, as_text: bool) -> None:
        self._yaml, self._texts, self._replaced, self._as_text = yaml, texts, replaced, as_text
        self._nodes = 0
        self._parsed = ParsedText(None)

    def read(self, root: Node) -> ParsedText:
        self._parsed.value = self._value(root, ())
        return self._parsed

    def _value(self, node: Node, path: KeyPath) -> Any:
        here = _position(node)
        self._nodes += 1
        if len(path) > MAX_DEPTH or self._nodes > MAX_NODES:
            raise TextError("nested too deeply, or an alias repeats without end", here, path)
        self._parsed.values[path] = here
        if str(node.tag).removeprefix(_CORE) not in _TAGS:
            raise TextError(f"tag {node.tag} is not allowed; use plain values", here, path)
        if isinstance(node, MappingNode):
            return self._mapping(node, path)
        if isinstance(node, SequenceNode):
            return [self._value(item, (*path, index)) for index, item in enumerate(node.value)]
        return self._scalar(node, path)

    def _mapping(self, node: MappingNode, path: KeyPath) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key, where = str(key_node.value).translate(_SHOW), _position(key_node)
            if not isinstance(key_node, ScalarNode):
                raise TextError("a key must be a plain word", where, path)
            if key in found:
                first = self._parsed.keys[(*path, key)]
                raise TextError(f"duplicate key (first on line {first.line})", where, (*path, key))
            self._parsed.keys[(*path, key)] = where
            found[key] = self._value(value_node, (*path, key))
        return found

    def _scalar(self, node: Node, path: KeyPath) -> Any:
        text, tag = node.value.translate(_SHOW), str(node.tag)
        if "${" in text and not any(path[:length] in self._replaced for length in range(1, len(path) + 1)):
            text = _substitute(text, _position(node), path)
            plain = not getattr(node, "style", None)  # `${N:-3}` is the number 3; quoted, it stays text
            if plain and not (text and path[:2] in self._texts):
                tag = str(self._yaml.resolver.resolve(ScalarNode, text, (True, False)))
        kind = tag.removeprefix(_CORE)
        if kind in {"str", "timestamp"} or (kind in {"int", "float"} and "_" in text):  # `1_0` is text in YAML 1.2
            return text
        if self._as_text and kind in {"int", "float", "bool"}:
            return text
        try:
            if kind in {"map", "seq"}:
                raise ValueError(kind)
            value = self._yaml.constructor.construct_object(ScalarNode(tag, text, node.start_mark, node.end_mark))
        except _UNREADABLE:
            raise TextError(f"expected {_KINDS.get(kind, kind)}, got {text[:40]!r}", _position(node), path) from None
        if isinstance(value, float) and not math.isfinite(value):
            raise TextError(f"expected a finite number, got {value!r}", _position(node), path)
        if what := beyond_limits(value):
            raise TextError(what, _position(node), path)
        return value


def _with_variables_hidden(text: str) -> str:
    """The text with `${NAME:-a,b}` as one scalar even inside { } and [ ]; columns are unchanged."""
    return _VARIABLE.sub(lambda found: found[0] if "\n" in found[0] else found[0].translate(_HIDE), text)


def _substitute(text: str, position: Position, path: KeyPath) -> str:
    def value(match: re.Match[str]) -> str:
        name, default = match.groups()
        if default and "${" in default:
            raise TextError(f"a default cannot contain another variable: {match[0]}", position, path)
        found = os.environ.get(name) if default is None else os.environ.get(name) or default
        if found is None:
            what = f"environment variable {name} is not set; set it, or write ${{{name}:-default}}"
            raise TextError(what, position, path)
        return found

    found = _VARIABLE.sub(value, text)
    if "${" in _VARIABLE.sub("", text):
        raise TextError(f"not a variable: {text[:40]}; write ${{NAME}} or ${{NAME:-default}}", position, path)
    return found


def _position(node: Node) -> Position:
    mark = node.start_mark
    return Position(1, 1) if mark is None else Position(mark.line + 1, mark.column + 1)


def _mark(error: MarkedYAMLError) -> Position:
    mark = error.problem_mark or error.context_mark
    return Position(1, 1) if mark is None else Position(mark.line + 1, mark.column + 1)
