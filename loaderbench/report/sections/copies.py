"""The dataset formats that trials read: their sizes, and the time to write them."""

from __future__ import annotations

from loaderbench.records import FormatCopy
from loaderbench.report import numbers, words
from loaderbench.report.model import Column, Paragraph, Row, Section, Table, Text
from loaderbench.report.view import View

_METHOD = (
    "Before the sweep, the files were converted to each format, once. Converted datasets are cached for later runs. "
    "\u201cTime to write\u201d covers all runs that wrote a part."
)


def section(view: View) -> Section | None:
    """A table with a row for each copy."""
    copies = view.run.copies
    if not copies:
        return None
    columns = (
        Column("Format"),
        Column("Samples", numeric=True),
        Column("Files", numeric=True),
        Column("Size", numeric=True),
        Column("Size vs source", numeric=True),
        Column("Time to write", numeric=True),
        Column("Checksum"),
    )
    table = Table("Converted datasets", columns, tuple(map(_row, copies)))
    return Section(id="copies", title="Formats", blocks=(Paragraph(Text(_METHOD), "small"), table))


def _row(copy: FormatCopy) -> Row:
    return Row(
        (
            words.name(copy.format),
            numbers.whole(copy.samples),
            numbers.whole(copy.files),
            numbers.memory(copy.stored_bytes),
            numbers.share(copy.stored_bytes / copy.source_bytes if copy.source_bytes else None),
            numbers.duration(copy.write_s),
            words.name(copy.checksum),
        )
    )
