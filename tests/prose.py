"""Sentences of what users read: Markdown, HTML templates, and the texts in the source of the package."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

from markdown_it import MarkdownIt
from retired_phrases import RETIRED

MOST_WORDS = 25
CALQUES = (
    r"\bbeside\b(?! the point)",
    r"\bdearer\b|\bdearest\b",
    r"\btold\b(?! (?:you|us|them)\b)",
    r"\blets? (?:\w+ )?through\b",
    r", so that\b",
    r"(?<!there )\bis no (?!longer\b|more\b|less\b|fewer\b|larger\b|smaller\b|slower\b|faster\b|better\b)",
    r"\bst(?:ands?|ood)\b(?! (?:for|out)\b)",
    r"\bmend(?:s|ed|ing)?\b",
    r"\bgo(?:es)? on\b",
    r"\banew\b",
    r"\bas (?:it is|they are)\b(?=[,.;:)]|$)",
    r"\btells\b(?! (?:you|us|them)\b)",
    r"\bfires?\b",
    r"\bcards?\b",
    r"\brungs?\b",
    r"\bwhatever\b",
    r"\bwould decide\b",
    r"\b(?:col|neighb)ours?\b",
    r"\b(?:normal|synchron|optim|serial|token)is(?:e|ed|es|er|ers|ing|ation)\b",
    r"\d %",
)
"""Rule 7: English words with a meaning borrowed from another language."""

NOT_IN_REPORTS = (
    r"\bremed(?:y|ies)\b",
    r"\brecommendations?\b",
    r"(?<!consumer\.)\baccelerator\b",
    r"\b(?:this|on the) page\b",
    r"\btaken away\b",
    r"\bgood to know\b",
    r"\bas if it were\b",
)
"""Words of the code, of contributors or of the docs, for which a report has others."""

_CODE = "\N{WHITE SQUARE}"  # replaces a piece of code, which counts as one word
_SENTENCE_ENDS = re.compile(r"(?<=[.!?])[\"')\u201d]*\s+(?=[\"'(\u201c]?[A-Z0-9" + _CODE + r"])")
_BLOCKS = {
    "p", "div", "section", "td", "th", "tr", "li", "h1", "h2", "h3", "h4", "dt", "dd", "summary", "figcaption",
    "caption", "button", "label", "option", "title", "span", "a", "code",
}  # fmt: skip
_RETIRED = {
    phrase: re.compile(r"\b" + re.escape(phrase).replace(r"\.\.\.", r"[^.]{1,40}?"), re.IGNORECASE)
    for phrase in RETIRED
}
_SAID = ("title", "aria-label", "alt", "placeholder")  # attributes that are read


def wrong_words(text: str, *, in_report: bool = False) -> list[str]:
    """The retired phrases and calques in a text; those that a report alone must not have, too, with `in_report`."""
    joined = " ".join(text.split())
    found = [phrase for phrase, pattern in _RETIRED.items() if pattern.search(joined)]
    patterns = (*CALQUES, *(NOT_IN_REPORTS if in_report else ()))
    return found + [match[0] for pattern in patterns for match in re.finditer(pattern, joined, re.IGNORECASE)]


def long_sentences(text: str) -> list[str]:
    """The sentences above the limit."""
    return [sentence for sentence in sentences(text) if words(sentence) > MOST_WORDS]


def sentences(text: str) -> list[str]:
    """A paragraph, divided where a full stop is followed by a capital, a figure or a piece of code."""
    return [part.strip() for part in _SENTENCE_ENDS.split(" ".join(text.split())) if part.strip()]


def words(sentence: str) -> int:
    """How many: what has a letter or a figure in it, and each piece of code."""
    return sum(bool(re.search(rf"[\w{_CODE}]", word)) for word in sentence.split())


def paragraphs_of_markdown(text: str) -> Iterator[str]:
    """Headings, paragraphs and list items, each by itself; no code, no table, no front matter."""
    yield from (inline for inline, in_table in _inlines(text) if not in_table)


def cells_of_markdown(text: str) -> Iterator[str]:
    """The cells of all tables."""
    yield from (inline for inline, in_table in _inlines(text) if in_table)


def code_of_markdown(text: str) -> Iterator[tuple[str, str]]:
    """Each block of code with its language, and each piece of code in a line with the language `inline`."""
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if token.type == "fence":
            yield token.info.strip(), token.content
        yield from (("inline", part.content) for part in token.children or [] if part.type == "code_inline")


def _inlines(text: str) -> Iterator[tuple[str, bool]]:
    without_front_matter = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
    in_table = False
    for token in MarkdownIt("commonmark").enable("table").parse(without_front_matter):
        if token.type in ("table_open", "table_close"):
            in_table = token.type == "table_open"
        if token.type == "inline":
            shown = {"text": None, "code_inline": _CODE, "softbreak": " ", "hardbreak": " "}
            parts = [shown[part.type] or part.content for part in token.children or [] if part.type in shown]
            yield "".join(parts), in_table


class _Texts(HTMLParser):
    """The texts of a template, one for each element that makes a block of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = [""]
        self._silent = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._silent = tag in ("script", "style")
        if tag in _BLOCKS:
            self.texts.append("")
        self.texts += [value for name, value in attrs if name in _SAID and value]
        self.texts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._silent = False
        if tag in _BLOCKS:
            self.texts.append("")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.texts[-1] += data


def texts_of_template(text: str) -> list[str]:
    """What a template of the report says, with a piece of code for what is filled in."""
    parser = _Texts()
    without_statements = re.sub(r"\{%.*?%\}|\{#.*?#\}", "", text, flags=re.DOTALL)
    parser.feed(re.sub(r"\{\{.*?\}\}", _CODE, without_statements, flags=re.DOTALL))
    return [found for found in parser.texts if found.strip()]


def texts_of_source(path: Path, *, documented: bool) -> list[str]:
    """The string literals of a file that hold words, and the docstrings of its public names where users read those."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = set(_docstrings(tree, public=False))
    shown = [node for node in _docstrings(tree, public=True) if documented]
    texts = [paragraph for node in shown for paragraph in _plain(str(node.value)).split("\n\n")]
    for literal in _literals(tree, docstrings):
        texts += [line for line in _plain(literal).splitlines() if not _is_code(literal)]
    return [text for text in texts if words(text) > 2]


def docstring_of_module(path: Path) -> list[str]:
    """Its paragraphs."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return [_plain(paragraph) for paragraph in text.split("\n\n")]


def paragraphs_of_comments(text: str) -> list[str]:
    """The comments of a YAML or Python file: each block of lines, and each after code; an indented line is code."""
    found = [""]
    for line in text.splitlines():
        whole, after = re.match(r"\s*#(?: (.*))?$", line), re.search(r"\S\s+# (.*)$", line)
        if whole:
            is_text = whole[1] and not whole[1].startswith(" ")
            found[-1:] = [f"{found[-1]} {whole[1]}".strip()] if is_text else [found[-1], ""]
        else:
            found += [after[1], ""] if after else [""]
    return [_plain(comment) for comment in found if words(comment) > 2]


def values_of(text: str, *keys: str) -> list[str]:
    """What a YAML or TOML file has as names and descriptions."""
    named = rf"^\s*(?:- )?(?:{'|'.join(keys)})\s*[:=]\s*\"?(.*?)\"?$"
    return re.findall(named, text, re.MULTILINE)


def _docstrings(tree: ast.Module, *, public: bool) -> Iterator[ast.Constant]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        first = node.body[0] if node.body else None
        if not (isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)):
            continue
        name = getattr(node, "name", "")
        if isinstance(first.value.value, str) and not (public and (name.startswith("_") or name == "")):
            yield first.value


def _literals(tree: ast.Module, docstrings: set[ast.Constant]) -> Iterator[str]:
    inside: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            inside.add(node.value)  # a docstring, or one of an attribute
        if isinstance(node, ast.JoinedStr):
            inside |= set(ast.walk(node)) - {node}
            parts = [str(part.value) if isinstance(part, ast.Constant) else _CODE for part in node.values]
            yield "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inside | docstrings:
            yield node.value


def _plain(text: str) -> str:
    """Code in backquotes as one word."""
    return re.sub(r"`[^`\n]+`", _CODE, text)


def _is_code(literal: str) -> bool:
    """Whether it is a program, a pattern or a style, and not a text."""
    return bool(re.search(r"\n(?: {4}|import |from )|\\[sdwb]|\(\?:|\w\|\w|[{;]\n|^</?\w+|^SELECT ", literal))
