"""The summary for a terminal, or as plain aligned lines for a program."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text as RichText

from loaderbench.report.metrics import SAMPLES
from loaderbench.report.model import Column, Document, Fact, Glance, Row, Table, Text
from loaderbench.report.sections.failures import FailureGroup, Failures
from loaderbench.report.sections.recommendations import Cards
from loaderbench.report.sections.sweep import Ranking
from loaderbench.report.sections.verdict import VerdictBlock

_MOST_CONFIGURATIONS = 5
_MOST_COLUMNS = 4  # columns of metrics; the report has all
_MOST_FIXES = 3
_WIDTH = 100  # columns of a typical terminal
_MOST_LINES = 3  # failures
_FIXES = {
    "measured": "Fixes, measured",
    "predicted": "Fixes, predicted (not run)",
    "heuristic": "Fixes, not measured (gain unknown)",
}
_MOST_DOUBTS, _MOST_REASONS = 2, 6  # lines
_MARKS = {"best": "\u2605", "tied": "\u2248"}
_STRONG = ("best", "total")
_BOUND_STYLES = {"INPUT": "bold red", "TRANSFER": "bold red", "COMPUTE": "bold green", "UNKNOWN": "bold yellow"}
_PLAIN = {
    "\u2605": "*", "\u2248": "=", "\u2013": "-", "\u2212": "-", "\u00d7": "x", "\u2026": "...",
    "\u2192": "->", "\u00b5": "u", "\u2019": "'",
}  # fmt: skip


def print_summary(
    document: Document,
    console: Console,
    *,
    report_path: str | Path | None = None,
    verbose: bool = False,
    verbose_flag: str = "",
    with_next_step: bool = True,
) -> None:
    """Print the verdict, the fixes, the reasons and the table: about 30 lines unless `verbose`.

    `verbose` adds all warnings, fixes and failures, the pipeline with its limits, isolation runs, evidence against the
    verdict, and notes. `verbose_flag` is the command's flag for that, if it has one. The next step is left out where
    the caller prints one.
    """
    where = _where_more_is(report_path is not None, verbose_flag)
    for found in document.all(VerdictBlock):
        _verdict(console, document, found, None if verbose else _MOST_DOUBTS, where)
    cards, failures = document.find(Cards), document.find(Failures)
    _fixes(console, cards, None if verbose else _MOST_FIXES)
    for found in document.all(VerdictBlock):
        _why(console, found, verbose=verbose)
    shown = [section for section in document.sections if verbose or not section.only_verbose]
    blocks = [block for section in shown for block in (section.glance if verbose else _last_table(section.glance))]
    _at_a_glance(console, blocks, verbose=verbose)
    if failures:
        groups = failures.groups if verbose else _causes(failures.groups)
        lines = [_failure(group, with_log=verbose or document.state.tone == "bad") for group in groups]
        _list(console, "Failures", lines, most=None if verbose else _MOST_LINES)
    for found in document.all(VerdictBlock) if verbose else ():
        _list(console, "Notes", [text.text for text in found.notes], "dim")
    steps = [found.next_step for found in document.all(VerdictBlock) if found.next_step and with_next_step]
    if steps or report_path is not None:
        say(console)
    for step in steps:
        line = f"Next: {': '.join(filter(None, (step.said('code in the report'), step.command)))}"
        (say_whole if step.command else say)(console, line, "bold")
    if report_path is not None:
        say_whole(console, f"Report: {report_path}")


def _where_more_is(has_report: bool, verbose_flag: str) -> str:
    """Where a reader finds what was left out."""
    return " or ".join(
        [
            *([f"with {verbose_flag}"] if verbose_flag else []),
            *(["in the report"] if has_report or not verbose_flag else []),
        ]
    )


def _verdict(console: Console, document: Document, finding: VerdictBlock, most: int | None, where: str) -> None:
    """Print the headline, the measured and target rates, and reasons to distrust them."""
    say(console, finding.headline.text, _BOUND_STYLES.get(finding.headline.text.partition("-")[0].split()[0], "bold"))
    for text in finding.reached:
        say(console, text.text)
    if document.state.tone != "ok" and not document.state.label.startswith("complete"):  # a warning counts its failures
        say(console, f"Run {document.state.label}", "bold red" if document.state.tone == "bad" else "yellow")
    shown = finding.doubts if most is None or len(finding.doubts) <= most else finding.doubts[: most - 1]
    for text in shown:
        say(console, f"Warning: {text.text}", "yellow")
    if left := len(finding.doubts) - len(shown):
        say(console, f"{left} more warnings {where}", "yellow")
    for text in finding.setup_notes if most is not None else ():  # else among the notes
        say(console, f"Note: {text.text}")


def _fixes(console: Console, found: Cards | None, most: int | None) -> None:
    """Print the fixes with their gains and references. Unless verbose, only those of the best basis."""
    if found and found.empty:
        say(console)
        say(console, found.empty)
    cards = found.cards if found else ()
    groups = [(title, [card for card in cards if card.badge == basis]) for basis, title in _FIXES.items()]
    groups = [group for group in groups if group[1]]
    for title, chosen in groups[: None if most is None else 1]:
        say(console)
        say(console, title, "bold")
        shown = chosen[:most]
        _numbered(
            console, [(card.is_floor, _fit(card.title.text, console), _fit(card.outcome, console)) for card in shown]
        )
        if most is not None and (left := len(cards) - len(shown)):
            say(console, f" {left} more in the report", "dim")
        if found and found.of_rates and title == _FIXES["measured"]:
            say(console, f" {found.of_rates}", "dim")


def _numbered(console: Console, fixes: Sequence[tuple[bool, str, str]]) -> None:
    """Print each fix in one line if all fit in `_WIDTH` columns, otherwise with its outcome below it.

    A gain that the target capped cannot be ranked among the others, and gets a dash instead of a number.
    """
    width = max(cell_len(title) for _, title, _ in fixes)
    in_one_line = width + max(cell_len(outcome) for *_, outcome in fixes) + 6 <= _WIDTH
    for number, (is_floor, title, outcome) in enumerate(fixes, 1):
        rank = " - " if is_floor else f"{number:2}."
        if in_one_line and outcome:
            say(console, f"{rank} {_pad(title, width, False)}  {outcome}")
            continue
        say(console, f"{rank} {title}")
        if outcome:
            say(console, f"    {outcome}")


def _why(console: Console, finding: VerdictBlock, *, verbose: bool) -> None:
    rows: list[Fact] = [reason for reason in finding.why if verbose or not reason.only_verbose]
    rows = rows if verbose else rows[:_MOST_REASONS]
    rows += [Fact("Against", text) for text in finding.against if verbose]
    if not rows:
        return
    say(console)
    say(console, "Why", "bold")
    width = max(cell_len(fact.label) for fact in rows)
    for fact in rows:
        say(console, f"  {_pad(fact.label, width, False)}  {fact.value.text}" if width else f"  {fact.value.text}")


def _causes(groups: Sequence[FailureGroup]) -> list[FailureGroup]:
    """The failures without trials pruned because of another failure, which a warning counts."""
    return [group for group in groups if group.kind.text != "pruned"]


def _failure(group: FailureGroup, *, with_log: bool) -> str:
    """Why the trials failed, the hint and the log, each on a line if known."""
    log = f"log: {group.log.text}" if group.log and with_log else ""
    what = [f"{group.kind.text} ({group.count}): {group.last_words.text or group.hint.text}"]
    return "\n    ".join(what + [text for text in (group.hint.text, log) if text and text not in what[0]])


def _list(console: Console, title: str, lines: Sequence[str], style: str = "", *, most: int | None = None) -> None:
    if not lines:
        return
    say(console)
    say(console, title, "bold")
    for line in lines[:most]:
        say(console, f"  {line}", style)
    left = len(lines) - len(lines[:most])
    if left > 0:
        say(console, f"  {left} more in the report", "dim")


def _last_table(blocks: Sequence[Glance]) -> list[Glance]:
    """All lines, and the last of several tables."""
    tables = [block for block in blocks if isinstance(block, Table)]
    return [block for block in blocks if block not in tables[:-1]]


def _at_a_glance(console: Console, blocks: list[Glance], *, verbose: bool) -> None:
    """Print tables with their captions, and facts as lines. Nested rows are printed only if `verbose`."""
    before: Glance | None = None
    for block in blocks:
        if isinstance(block, Table) or not isinstance(before, Fact):
            say(console)
        if isinstance(block, Ranking):
            _best(console, block)
        elif isinstance(block, Table):
            say(console, block.caption, "bold")
            draw(console, block.columns, tuple(row for row in block.rows if verbose or not row.depth))
        else:
            say(console, f"{block.label}: {block.value.text}")
        before = block


def _best(console: Console, ranking: Ranking) -> None:
    """Print the table of configurations, and the meaning of its marks."""
    columns, rows = _cut(ranking)
    draw(console, columns, rows)
    marks = {row.mark for row in rows} if len(rows) > 1 else set[str]()
    why = ranking.why.text.partition(". ")[0] if ranking.why else ""
    meanings = {"best": f"recommended: {why[:1].lower()}{why[1:]}" if why else "recommended", "tied": "tied with it"}
    if legend := [f"{_MARKS[mark]} {meanings[mark]}" for mark in meanings if mark in marks]:
        say(console, "   ".join(legend), "dim")


def _cut(ranking: Table) -> tuple[tuple[Column, ...], tuple[Row, ...]]:
    """The first rows, with the columns of the configuration and the first metrics."""
    first = next((i for i, c in enumerate(ranking.columns) if c.label == SAMPLES.label), 0)
    end = first + _MOST_COLUMNS
    shown, columns = _first(ranking.rows), ranking.columns[:end]
    if not any(row.is_baseline for row in shown):
        return columns, tuple(Row(row.cells[:end], mark=row.mark) for row in shown)
    notes = {True: Text("baseline"), False: Text("")}
    rows = tuple(Row((*row.cells[:end], notes[row.is_baseline]), mark=row.mark) for row in shown)
    return (*columns, Column("")), rows


def _first(rows: Sequence[Row]) -> list[Row]:
    """The best and next configurations by rank, and the baseline, which gains are relative to."""
    best_first = sorted(rows, key=lambda row: row.mark != "best")
    shown, left = best_first[:_MOST_CONFIGURATIONS], best_first[_MOST_CONFIGURATIONS:]
    return [*shown, *(row for row in left if row.is_baseline)]


def draw(console: Console, columns: tuple[Column, ...], rows: tuple[Row, ...]) -> None:
    """Print a table in the format for a terminal or for a program."""
    table = _rich_table if console.is_terminal else _plain_table
    table(console, columns, rows)


def _rich_table(console: Console, columns: tuple[Column, ...], rows: tuple[Row, ...]) -> None:
    table = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("")
    for column in columns:
        table.add_column(
            RichText(_fit(column.label, console)), justify="right" if column.numeric else "left", no_wrap=True
        )
    for row in rows:
        style = "bold" if row.mark in _STRONG else None
        cells = (RichText(_fit(text, console)) for text in (_MARKS.get(row.mark, ""), *_texts(row)))
        table.add_row(*cells, style=style)
    console.print(table)


def _texts(row: Row) -> list[str]:
    """A row's texts, indented if the row is a part of the row above."""
    first, *others = (cell.short for cell in row.cells)
    return [f"{'  ' * row.depth}{first}", *others]


def _plain_table(console: Console, columns: tuple[Column, ...], rows: tuple[Row, ...]) -> None:
    """Print each row on one line, however wide, so `awk` can parse it."""
    marks = [_fit(_MARKS.get(row.mark, " "), console) for row in rows]
    lines = [[_fit(column.label, console) for column in columns]]
    lines += [[_fit(text, console) for text in _texts(row)] for row in rows]
    widths = [max(cell_len(line[i]) for line in lines) for i in range(len(columns))]
    for mark, line in zip([" ", *marks], lines, strict=True):
        cells = [_pad(x, w, column.numeric) for x, w, column in zip(line, widths, columns, strict=True)]
        say(console, f"{mark} {'  '.join(cells)}".rstrip())


def _pad(text: str, width: int, right: bool) -> str:
    space = " " * (width - cell_len(text))
    return space + text if right else text + space


def say(console: Console, text: str = "", style: str = "") -> None:
    """Print one line. It wraps in a terminal, and stays unwrapped for a program."""
    console.print(RichText(_fit(text, console), style=style), soft_wrap=not console.is_terminal)


def say_whole(console: Console, line: str, style: str = "") -> None:
    """Print a line without line breaks in it, to be copied as one: the terminal wraps it where needed."""
    console.print(RichText(_fit(line, console), style=style), soft_wrap=True)


def _fit(text: str, console: Console) -> str:
    """The text in characters that the output's encoding has: a log can be limited to ASCII."""
    try:
        text.encode(console.encoding)
    except UnicodeEncodeError:
        for sign, plain in _PLAIN.items():
            text = text.replace(sign, plain)
        return text.encode(console.encoding, "replace").decode(console.encoding)
    return text
