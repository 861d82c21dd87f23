"""Whether the loaders of a sweep yielded the same batches."""

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
    """A table with a row for each loader except the reference loader."""
    parity = view.run.parity
    if not parity:
        return None
    columns = (Column("Loader"), Column("Samples", numeric=True), Column("Batches"), Column("Difference", numeric=True))
    table = Table(f"Compared with {parity[0].against}", columns, tuple(map(_row, parity)))
    return Section(id="parity", title="Same batches", blocks=(Paragraph(Text(_METHOD), "small"), table))


def _row(parity: Parity) -> Row:
    samples = numbers.whole(parity.samples, parity.not_measured.get("samples"))
    return Row((words.name(parity.loader), samples, words.sentence(_said(parity)), _difference(parity)))


def _said(parity: Parity) -> str:
    if parity.refused:
        return f"not measured: {parity.refused}"
    return "not compared" if parity.samples is None else "equal shapes, dtypes and labels"


def _difference(parity: Parity) -> Value:
    return numbers.share(parity.difference, parity.not_measured.get("difference"))
