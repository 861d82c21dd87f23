"""The report as Markdown for a comment on a pull request: what a reviewer has to know, and nothing that acts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from loaderbench.report.markdown_text import code, fenced, folded, inline, table
from loaderbench.report.parts import Card, Fact, FailureGroup, Row, Table, Text, Value, VerdictPart
from loaderbench.report.tree import ReportDocument

MOST_BYTES = 60_000  # GitHub takes comments of 65,536 characters, and summaries of a job of 1 MiB
MOST_ROWS = 20
_MOST_LINES = 12  # of one list
_MOST_SNIPPET = 12_000  # characters
_MARKS = {"best": "\u2605 ", "tied": "= "}


def render_markdown(document: ReportDocument) -> str:
    """The whole comment, of at most `MOST_BYTES` in UTF-8; where something had to be cut it says what."""
    first, *sections, last = [(name, text) for name, text in _sections(document) if text]
    room = MOST_BYTES - 500 - sum(_size(text) for _, text in (first, last))
    kept, cut = [first[1]], []
    for name, text in sections:
        if _size(text) <= room:
            room -= _size(text)
            kept.append(text)
        else:
            cut.append(name)
    note = f"*Cut to fit a comment: {', '.join(cut)}. The page has all of it.*" if cut else ""
    whole = "\n\n".join(filter(None, (*kept, note, last[1]))) + "\n"
    return whole.encode("utf-8", "replace").decode("utf-8")


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace")) + 2


def _sections(document: ReportDocument) -> Iterator[tuple[str, str]]:
    """Each with the name by which it is missed; head and environment are small and always there."""
    cards = document.recommendations.cards if document.recommendations else ()
    empty = document.recommendations.empty if document.recommendations else None
    yield "headline", _head(document)
    yield "key figures", _figures(document.verdict)
    yield "evidence", _titled("Evidence", _list(document.verdict.evidence))
    yield "evidence against", _titled("What speaks for another cause", _list(document.verdict.against))
    yield "recommendations", _titled("Recommendations", _cards(cards) or inline(empty or ""))
    yield "snippet", _snippet(cards[0]) if cards else ""
    for block in document.glance:
        yield "a table", _block(block)
    yield "configurations", _ranking(document.ranking) if document.ranking else ""
    yield "failures", _titled("Failures", _lines([_failure(group) for group in document.failures]))
    yield "warnings", _titled("Reasons to distrust this run", _list(document.warnings))
    yield "notes", _titled("Good to know", _list(document.notes))
    yield "environment", _environment(document)


def _titled(title: str, content: str) -> str:
    return f"### {title}\n\n{content}" if content else ""


def _lines(lines: Sequence[str]) -> str:
    """A list, and how many are left out of it."""
    left = len(lines) - _MOST_LINES
    more = [f"and {left:,} more on the page"] if left > 0 else []
    return "\n".join(f"- {line}" for line in [*lines[:_MOST_LINES], *more])


def _list(texts: Sequence[Text]) -> str:
    return _lines([inline(text.text) for text in texts])


def _head(document: ReportDocument) -> str:
    """The headline, and how sure and how complete it is."""
    said = (document.verdict.confidence, document.state.label)
    line = f"**{inline(document.name.text)}**: {', '.join(map(inline, said))}"
    hint = f"\n\n{inline(document.state.hint)}" if document.state.hint else ""
    return f"## {inline(document.verdict.headline.text)}\n\n{line}{hint}"


def _figures(verdict: VerdictPart) -> str:
    """From the baseline to the best, or what was measured where there is nothing to compare."""
    if not verdict.figures:
        return ""
    compared = any(figure.before for figure in verdict.figures)
    header = ["", "Baseline", verdict.best_label] if compared else ["", verdict.best_label]
    rows = []
    for figure in verdict.figures:
        before = [_short(figure.before) if figure.before else ""] if compared else []
        rows.append([inline(figure.label), *before, inline(figure.value.text)])
    shown = table(header, [False] + [True] * (len(header) - 1), rows)
    return _titled(inline(verdict.title), "\n\n".join(filter(None, (shown, _configurations(verdict)))))


def _configurations(verdict: VerdictPart) -> str:
    """Which configurations the figures are of, why these, and what could be reached."""
    named = (("Baseline", verdict.baseline, None), (verdict.best_label, verdict.best, verdict.why_best))
    lines = [f"{label}: {code(found.text)}{_why(why)}" for label, found, why in named if found]
    return "<br>\n".join([*lines, *([inline(verdict.ceiling.text)] if verdict.ceiling else [])])


def _why(why: Text | None) -> str:
    return f", {inline(why.text)}" if why and why.text else ""


def _cards(cards: Sequence[Card]) -> str:
    """Badge, title, gain and change of each."""
    lines = []
    for number, card in enumerate(cards[:_MOST_LINES], 1):
        gain = f": {inline(card.gain.text)}" if card.gain else ""
        change = ", ".join(code(f"{fact.label}: {fact.value.text}") for fact in card.change)
        lines.append(f"{number}. **{inline(card.title.text)}** ({card.badge}){gain}{f'<br>{change}' if change else ''}")
    left = len(cards) - _MOST_LINES
    return "\n".join([*lines, *([f"\nand {left:,} more on the page"] if left > 0 else [])])


def _snippet(card: Card) -> str:
    """The program of the first recommendation, folded."""
    if not card.snippets:
        return ""
    snippet = card.snippets[0]
    if len(snippet.text) > _MOST_SNIPPET:
        return "The program of the first recommendation is on the page."
    return folded(f"{snippet.language} for the first", fenced(snippet.text, snippet.language.lower()))


def _block(block: Table | Fact) -> str:
    """What a profile shows in short: a table, or a line."""
    if isinstance(block, Fact):
        return f"{inline(block.label)}: {inline(block.value.text)}"
    return _titled(inline(block.caption), _table(block, block.rows[:MOST_ROWS]))


def _ranking(ranking: Table) -> str:
    """The fastest, and the best also where it is not among them."""
    best = [row for row in ranking.rows[MOST_ROWS:] if row.mark == "best"]
    rows = [*ranking.rows[: MOST_ROWS - len(best)], *best]
    left = len(ranking.rows) - len(rows)
    note = f"\n\nand {left:,} more on the page" if left else ""
    return _titled(inline(ranking.caption), f"{_table(ranking, rows)}{note}")


def _table(found: Table, rows: Sequence[Row]) -> str:
    header = [inline(column.label) for column in found.columns]
    numeric = [column.numeric for column in found.columns]
    return table(header, numeric, [_cells(row) for row in rows])


def _cells(row: Row) -> list[str]:
    """The cells of a row, without the reasons for what is missing."""
    first, *others = map(_short, row.cells)
    return [f"{_MARKS.get(row.mark, '')}{'&ensp;' * row.depth}{first}", *others]


def _short(cell: Text) -> str:
    return inline(cell.main if isinstance(cell, Value) and cell.missing else cell.text)


def _failure(group: FailureGroup) -> str:
    """What ended the trials, what to do, and where to read on."""
    what = f"**{inline(group.kind.text)}** ({inline(group.count)})"
    said = f": {code(group.last_words.text)}" if group.last_words.text else ""
    hint = f"<br>{inline(group.hint.text)}" if group.hint.text else ""
    log = f"<br>log: {code(group.log.text)}" if group.log and group.log.text else ""
    return f"{what}{said}{hint}{log}"


def _environment(document: ReportDocument) -> str:
    facts = "; ".join(f"{inline(fact.label)}: {inline(fact.value.text)}" for fact in document.facts)
    return f"{facts}. Made by {inline(document.made_by)}."
