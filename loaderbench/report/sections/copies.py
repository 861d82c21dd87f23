"""The formats that trials read: how large they are, and what writing them took."""

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
    """A row for each copy."""
    found = view.run.copies
    if not found:
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
    table = Table("Converted datasets", columns, tuple(map(_row, found)))
    return Section(id="copies", title="Formats", blocks=(Paragraph(Text(_METHOD), "small"), table))


def _row(found: FormatCopy) -> Row:
    return Row(
        (
            words.name(found.format),
            numbers.whole(found.samples),
            numbers.whole(found.files),
            numbers.memory(found.stored_bytes),
            numbers.share(found.stored_bytes / found.source_bytes if found.source_bytes else None),
            numbers.duration(found.write_s),
            words.name(found.checksum),
        )
    )
