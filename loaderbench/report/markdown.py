"""The report as Markdown for a comment on a pull request: what a reviewer needs, without active content.

All text is escaped: no markup, links, mentions or issue references. Special characters are those of CommonMark and of
GitHub's extensions: https://github.github.com/gfm/. GitHub's autolinks are applied to the rendered text (`@name`, `#1`,
`owner/repo#1`, `GH-1`, commits, `:emoji:`, addresses) and cannot be escaped. A zero-width space breaks them up, as
Renovate and Dependabot do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from loaderbench.report.model import Document, Fact, Glance, Row, Table, Text
from loaderbench.report.sections.failures import FailureGroup, Failures
from loaderbench.report.sections.recommendations import Card, Cards
from loaderbench.report.sections.sweep import Ranking
from loaderbench.report.sections.verdict import KeyFigures, NextStep, VerdictBlock

MOST_BYTES = 60_000  # GitHub accepts 65,536 characters in a comment, and 1 MiB in a job summary
MOST_ROWS = 20
_MOST_LINES = 12  # items of one list
_MOST_SNIPPET = 12_000  # characters
_MARKS = {"best": "\u2605 ", "tied": "\u2248 "}
_NO_WIDTH = "\u200b"

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


def render_markdown(document: Document) -> str:
    """Render a comment of at most `MOST_BYTES` in UTF-8. It names the sections that were omitted."""
    first, *sections, last = [(name, text) for name, text in _sections(document) if text]
    room = MOST_BYTES - 500 - sum(_size(text) for _, text in (first, last))
    parts, cut = [first[1]], []
    for name, text in sections:
        if _size(text) <= room:
            room -= _size(text)
            parts.append(text)
        else:
            cut.append(name)
    note = f"*Omitted to fit a comment: {', '.join(cut)}. See the report.*" if cut else ""
    whole = "\n\n".join(filter(None, (*parts, note, last[1]))) + "\n"
    return whole.encode("utf-8", "replace").decode("utf-8")


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace")) + 2


def _sections(document: Document) -> Iterator[tuple[str, str]]:
    """Sections with their names for the note of what was omitted. Head and environment are small and never omitted."""
    finding, figures = document.find(VerdictBlock), document.find(KeyFigures)
    cards, failures = document.find(Cards), document.find(Failures)
    advice = cards.cards if cards else ()
    yield "headline", _head(document, finding) if finding else ""
    yield "warnings", _titled("Reasons to distrust this run", _list(finding.doubts)) if finding else ""
    yield "key figures", _figures(document, figures) if figures else ""
    yield "evidence", _titled("Evidence", _evidence(finding)) if finding else ""
    yield "evidence against", _titled("Evidence against", _list(finding.against)) if finding else ""
    yield (
        "fixes",
        _titled("Fixes", _cards(advice, cards.of_rates) if cards and advice else inline((cards and cards.empty) or "")),
    )
    yield "code", _snippet(advice[0]) if advice else ""
    for section in document.sections:
        for block in section.glance if section.in_markdown else ():
            yield "configs" if isinstance(block, Ranking) else "a table", _block(block)
    yield "failures", _titled("Failed trials", _lines(list(map(_failure, failures.groups)) if failures else []))
    yield "notes", _titled("Notes", _list(finding.notes)) if finding else ""
    yield "environment", _environment(document)


def _titled(title: str, content: str) -> str:
    return f"### {title}\n\n{content}" if content else ""


def _lines(lines: Sequence[str]) -> str:
    """A list, with the number of omitted lines."""
    left = len(lines) - _MOST_LINES
    more = [f"{left:,} more in the report"] if left > 0 else []
    return "\n".join(f"- {line}" for line in [*lines[:_MOST_LINES], *more])


def _list(texts: Sequence[Text]) -> str:
    return _lines([inline(text.text) for text in texts])


def _head(document: Document, finding: VerdictBlock) -> str:
    """The headline, the state of the run, and the next step."""
    line = f"**{inline(document.name.text)}**: {inline(document.state.label)}"
    hint = f"\n\n{inline(document.state.hint)}" if document.state.hint else ""
    step = f"\n\n**Next:** {_next(finding.next_step)}" if finding.next_step else ""
    return f"## {inline(finding.headline.text)}\n\n{line}{hint}{step}"


def _next(step: NextStep) -> str:
    """The next step, with its command."""
    text = inline(step.said("code below"))
    return f"{text}: {code(step.command)}" if step.command else text


def _evidence(finding: VerdictBlock) -> str:
    """The measured rate, and what limits it."""
    return _lines([*(inline(text.text) for text in finding.reached), *map(_fact, finding.why)])


def _figures(document: Document, key_figures: KeyFigures) -> str:
    """Baseline and best, or the only measured configuration."""
    compared = any(figure.before for figure in key_figures.figures)
    header = ["", "Baseline", key_figures.best_label] if compared else ["", key_figures.best_label]
    rows = []
    for figure in key_figures.figures:
        before = [inline(figure.before.short) if figure.before else ""] if compared else []
        rows.append([inline(figure.label), *before, inline(figure.value.text)])
    shown = table(header, [False] + [True] * (len(header) - 1), rows)
    title = next(section.title for section in document.sections if key_figures in section.blocks)
    return _titled(inline(title), "\n\n".join(filter(None, (shown, _configurations(key_figures)))))


def _configurations(key_figures: KeyFigures) -> str:
    """The configurations of the key figures, why they were chosen, and the ceiling."""
    named = (("Baseline", key_figures.baseline, None), (key_figures.best_label, key_figures.best, key_figures.why_best))
    lines = [f"{label}: {code(config.text)}{_why(why)}" for label, config, why in named if config]
    return "<br>\n".join([*lines, *([inline(key_figures.ceiling.text)] if key_figures.ceiling else [])])


def _why(why: Text | None) -> str:
    return f": {inline(why.text)}" if why and why.text else ""


def _cards(cards: Sequence[Card], of_rates: str | None) -> str:
    """Badge, title, gain and change of each fix, and why their rates differ from the table."""
    lines = []
    for number, card in enumerate(cards[:_MOST_LINES], 1):
        gain = f": {inline(card.gain.text)}" if card.gain else ""
        change = ", ".join(code(f"{fact.label}: {fact.value.text}") for fact in card.change)
        lines.append(
            f"{number}. **{inline(card.title.text)}** ({card.badge_text}){gain}{f'<br>{change}' if change else ''}"
        )
    left = len(cards) - _MOST_LINES
    more = [f"\n{left:,} more in the report"] if left > 0 else []
    return "\n".join([*lines, *more, *([f"\n{inline(of_rates)}"] if of_rates else [])])


def _snippet(card: Card) -> str:
    """The code of the first fix, folded."""
    if not card.snippets:
        return ""
    snippet = card.snippets[0]
    if len(snippet.text) > _MOST_SNIPPET:
        return "The code of fix 1 is in the report."
    return folded(f"{snippet.language} code for fix 1", fenced(snippet.text, snippet.language.lower()))


def _block(block: Glance) -> str:
    """The short form of a section: a table, or a line."""
    if isinstance(block, Ranking):
        return _ranking(block)
    if isinstance(block, Fact):
        return _fact(block)
    return _titled(inline(block.caption), _table(block, block.rows[:MOST_ROWS]))


def _fact(fact: Fact) -> str:
    """A fact on one line, with its label if it has one."""
    return f"{inline(fact.label)}: {inline(fact.value.text)}" if fact.label else inline(fact.value.text)


def _ranking(ranking: Ranking) -> str:
    """The fastest configurations, always including the best one."""
    best = [row for row in ranking.rows[MOST_ROWS:] if row.mark == "best"]
    rows = [*ranking.rows[: MOST_ROWS - len(best)], *best]
    left = len(ranking.rows) - len(rows)
    note = f"\n\n{left:,} more in the report" if left else ""
    return _titled(inline(ranking.caption), f"{_table(ranking, rows)}{note}")


def _table(found: Table, rows: Sequence[Row]) -> str:
    return filled(found, [_cells(row) for row in rows])


def _cells(row: Row) -> list[str]:
    """The cells of a row. Missing values have no reason here."""
    first, *others = (inline(cell.short) for cell in row.cells)
    return [f"{_MARKS.get(row.mark, '')}{'&ensp;' * row.depth}{first}", *others]


def _failure(group: FailureGroup) -> str:
    """Why the trials failed, the hint, and the log."""
    what = f"**{inline(group.kind.text)}** ({inline(group.count)})"
    message = f": {code(group.last_words.text)}" if group.last_words.text else ""
    hint = f"<br>{inline(group.hint.text)}" if group.hint.text else ""
    log = f"<br>log: {code(group.log.text)}" if group.log and group.log.text else ""
    return f"{what}{message}{hint}{log}"


def _environment(document: Document) -> str:
    facts = "; ".join(f"{inline(fact.label)}: {inline(fact.value.text)}" for fact in document.facts)
    return f"{facts}. Generated by {inline(document.made_by)}."


def inline(text: str) -> str:
    """Escape text for a line, a heading, a list item or a table cell."""
    line = " ".join(text.split())
    for sign in _PARTED:
        line = sign.sub(rf"\1{_NO_WIDTH}", line)
    return _AT_START.sub(r"\1\\", line.translate(_ESCAPED))


def code(text: str) -> str:
    """Text as inline code, also for a table cell. GitHub does not search code for links."""
    line = " ".join(text.split())
    if not line:
        return ""
    if "|" in line or "`" in line:  # a pipe ends a cell even in code; entities work everywhere
        return f"<code>{line.translate(_IN_HTML)}</code>"
    return f"`{line}`"


def fenced(text: str, language: str) -> str:
    """A code block with a fence longer than any in the text. `language` is trusted."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def filled(found: Table, rows: Sequence[Sequence[str]]) -> str:
    """The columns of a table with these cells, which are already Markdown."""
    header = [inline(column.label) for column in found.columns]
    return table(header, [column.numeric for column in found.columns], rows)


def table(header: Sequence[str], numeric: Sequence[bool], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are already Markdown. Numeric columns are right-aligned."""
    rule = ["---:" if right else "---" for right in numeric]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *rows))


def folded(summary: str, content: str) -> str:
    """Content that a click unfolds. Blank lines make it Markdown again. `summary` is trusted."""
    return f"<details><summary>{summary}</summary>\n\n{content}\n\n</details>"
