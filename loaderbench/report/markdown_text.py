"""Any text as Markdown that shows it and does nothing: no markup, no link, nobody mentioned, no issue referenced.

The signs are those of CommonMark and of GitHub's additions: https://github.github.com/gfm/. What GitHub looks for after
the Markdown was rendered (`@name`, `#1`, `owner/repo#1`, `GH-1`, commits, `:emoji:`, addresses) is no question of
escapes: a sign of no width parts it, as Renovate and Dependabot do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

NO_WIDTH = "\u200b"

_SIGNS = {sign: f"\\{sign}" for sign in "\\`*_[]~"}
_SIGNS |= {"<": "&lt;", ">": "&gt;", "&": "&amp;", "|": "&#124;", "$": "<span>$</span>"}
_ESCAPED = str.maketrans(_SIGNS)
_IN_HTML = str.maketrans({sign: f"&#{ord(sign)};" for sign in "\\`*_[]~<>&|$!#@:/"})
_AT_START = re.compile(r"^(?:(?=#|[+=-](?:\s|$)|[=-]{2,}$)|(\d+)(?=[.)](?:\s|$)))")
_PARTED = (
    re.compile(r"(@)(?=\w)"),
    re.compile(r"(#)(?=\d)"),
    re.compile(r"\b(GH-)(?=\d)", re.IGNORECASE),
    re.compile(r"(:)(?=//|[\w+-]+:)"),
    re.compile(r"\b(www)(?=\.)", re.IGNORECASE),
    re.compile(r"\b(?=[a-f]*\d)(?=\d*[a-f])([0-9a-f]{6})(?=[0-9a-f]{1,34}\b)"),
)


def inline(text: str) -> str:
    """The text within a line, a heading, an item of a list or a cell of a table."""
    line = " ".join(text.split())
    for sign in _PARTED:
        line = sign.sub(rf"\1{NO_WIDTH}", line)
    return _AT_START.sub(r"\1\\", line.translate(_ESCAPED))


def code(text: str) -> str:
    """The text as code within a line, fit for a cell too. GitHub looks for nothing in code."""
    line = " ".join(text.split())
    if not line:
        return ""
    if "|" in line or "`" in line:  # a cell ends at a pipe even in code; entities are signs everywhere
        return f"<code>{line.translate(_IN_HTML)}</code>"
    return f"`{line}`"


def fenced(text: str, language: str) -> str:
    """Lines of code; the fence is longer than any within. `language` is ours."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def table(header: Sequence[str], numeric: Sequence[bool], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are Markdown already; numeric columns stand at their right."""
    rule = ["---:" if right else "---" for right in numeric]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *rows))


def folded(summary: str, content: str) -> str:
    """Content that a click opens; the empty lines make it Markdown again. `summary` is ours."""
    return f"<details><summary>{summary}</summary>\n\n{content}\n\n</details>"
