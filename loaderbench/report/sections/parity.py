"""Whether the loaders of a sweep gave the same batches."""

from __future__ import annotations

from loaderbench.records import Parity
from loaderbench.report import numbers, words
from loaderbench.report.model import Column, Paragraph, Row, Section, Table, Text, Value
from loaderbench.report.view import View

_METHOD = (
    "Before the sweep, each loader made batches of the same files in the same order. Shapes, dtypes and labels "
    "must match; values must match in mean and standard deviation. Individual pixels may differ between decoders."
)


def section(view: View) -> Section | None:
    """A row for each loader but the one that the others were compared with."""
    found = view.run.parity
    if not found:
        return None
    columns = (Column("Loader"), Column("Samples", numeric=True), Column("Batches"), Column("Difference", numeric=True))
    table = Table(f"Compared with {found[0].against}", columns, tuple(map(_row, found)))
    return Section(id="parity", title="Same batches", blocks=(Paragraph(Text(_METHOD), "small"), table))


def _row(found: Parity) -> Row:
    samples = numbers.whole(found.samples, found.not_measured.get("samples"))
    return Row((words.name(found.loader), samples, words.sentence(_said(found)), _difference(found)))


def _said(found: Parity) -> str:
    if found.refused:
        return f"not measured: {found.refused}"
    return "not compared" if found.samples is None else "equal shapes, dtypes and labels"


def _difference(found: Parity) -> Value:
    return numbers.share(found.difference, found.not_measured.get("difference"))
