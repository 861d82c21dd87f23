"""Tables next to a sweep: configurations that it dropped, whether loaders yield the same batches, and formats."""

from __future__ import annotations

from loaderbench.records import Dropped, FormatCopy, Parity
from loaderbench.report import axes, numbers, tables, words
from loaderbench.report.model import Column, Details, Paragraph, Row, Section, Table, Text, Value
from loaderbench.report.view import MOST_ROWS, View

_OF_DROPPED = (
    "A config was dropped after a round if it was significantly slower than the fastest, corrected for the number of "
    "rounds and configs."
)
_OF_PARITY = (
    "Before the sweep, each loader made batches of the same files in the same order. Shapes, dtypes and labels "
    "must match; values must match in mean and standard deviation. Individual pixels may differ between decoders."
)
_OF_COPIES = (
    "Before the sweep, the files were converted to each format, once. Converted datasets are cached for later runs. "
    "\u201cTime to write\u201d covers all runs that wrote a part."
)


def dropped(view: View) -> Section | None:
    """Configurations that an adaptive sweep stopped measuring, those measured in the most rounds first."""
    found = sorted(view.run.dropped, key=lambda one: -one.rounds)
    if not found:
        return None
    names = axes.columns(view.run)
    columns = (*axes.headings(names), Column("Rounds", numeric=True), Column("Reason"))
    rows = tuple(_dropped_row(view, one, names) for one in found[:MOST_ROWS])
    note = tables.left_out(len(found) - len(rows), "in run.json")
    table = Table("Dropped configs", columns, rows, note, sortable=True)
    blocks = (Paragraph(Text(_OF_DROPPED), "small"), Details("All dropped configs", (table,), len(rows)))
    return Section(id="dropped", title="Dropped configs", blocks=blocks)


def _dropped_row(view: View, one: Dropped, names: list[str]) -> Row:
    rounds = Value(str(one.rounds), sort=one.rounds)
    return Row((*axes.cells(view.run, one.config, names), rounds, words.sentence(one.why)))


def parity(view: View) -> Section | None:
    """Whether the loaders yielded the same batches: a row for each loader except the reference loader."""
    found = view.run.parity
    if not found:
        return None
    columns = (Column("Loader"), Column("Samples", numeric=True), Column("Batches"), Column("Difference", numeric=True))
    table = Table(f"Compared with {found[0].against}", columns, tuple(map(_parity_row, found)))
    return Section(id="parity", title="Same batches", blocks=(Paragraph(Text(_OF_PARITY), "small"), table))


def _parity_row(one: Parity) -> Row:
    samples = numbers.whole(one.samples, one.not_measured.get("samples"))
    difference = numbers.share(one.difference, one.not_measured.get("difference"))
    return Row((words.name(one.loader), samples, words.sentence(_batches_of(one)), difference))


def _batches_of(one: Parity) -> str:
    if one.refused:
        return f"not measured: {one.refused}"
    return "not compared" if one.samples is None else "equal shapes, dtypes and labels"


def copies(view: View) -> Section | None:
    """The dataset formats that trials read, with their sizes and the time to write them."""
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
    table = Table("Converted datasets", columns, tuple(map(_copy_row, found)))
    return Section(id="copies", title="Formats", blocks=(Paragraph(Text(_OF_COPIES), "small"), table))


def _copy_row(one: FormatCopy) -> Row:
    return Row(
        (
            words.name(one.format),
            numbers.whole(one.samples),
            numbers.whole(one.files),
            numbers.memory(one.stored_bytes),
            numbers.share(one.stored_bytes / one.source_bytes if one.source_bytes else None),
            numbers.duration(one.write_s),
            words.name(one.checksum),
        )
    )
