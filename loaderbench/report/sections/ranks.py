"""The ranks of a distributed training: how much each waits for data, and what it says of itself."""

from __future__ import annotations

from collections.abc import Sequence

from loaderbench.records import Rank
from loaderbench.report import numbers, words
from loaderbench.report.model import Block, Column, Paragraph, Row, Section, Table, Text
from loaderbench.report.view import View

MOST_ROWS = 64
_SLOWEST = 10
_QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)


def section(view: View) -> Section | None:
    """A table of all ranks, or of the slowest of many; `None` outside of a distributed training."""
    ranks = view.run.ranks
    if not ranks:
        return None
    by_wait = sorted(ranks, key=lambda one: -(one.data_wait_share or 0.0))
    slowest, every = _table("Ranks that wait most for data", by_wait[:_SLOWEST]), _table("Ranks", ranks)
    blocks: tuple[Block, ...] = (every,) if len(ranks) <= MOST_ROWS else (_spread(by_wait), slowest)
    glance = every if len(ranks) <= _SLOWEST else slowest
    return Section(id="ranks", title="Ranks", label="Ranks", blocks=blocks, glance=(glance,), in_markdown=True)


def _table(title: str, ranks: Sequence[Rank]) -> Table:
    """A rank each; devices where there are any."""
    with_device = any(one.device for one in ranks)
    with_waits = any(one.rank_wait_share is not None for one in ranks)
    columns = (
        Column("Rank", numeric=True),
        Column("Host"),
        *((Column("Device"),) if with_device else ()),
        Column("Samples/s", numeric=True),
        Column("Data wait", numeric=True, title="share of step time"),
        *((Column("Wait for ranks", numeric=True, title="share of step time"),) if with_waits else ()),
        Column("Verdict", prose=True),
    )
    return Table(title, columns, tuple(_row(one, with_device=with_device, with_waits=with_waits) for one in ranks))


def _row(one: Rank, *, with_device: bool, with_waits: bool) -> Row:
    bound = one.verdict.bound
    return Row((
        Text(str(one.rank)),
        words.outside(one.host, words.NAME_LIMIT),
        *((Text(one.device or ""),) if with_device else ()),
        numbers.quantity(one.samples_per_s),
        numbers.share(one.data_wait_share),
        *((numbers.share(one.rank_wait_share),) if with_waits else ()),
        Text(one.verdict.headline if bound == "unknown" else f"{bound}-bound: {one.verdict.headline}"),
    ))  # fmt: skip


def _spread(by_wait: Sequence[Rank]) -> Paragraph:
    """Quantiles of many."""
    waits = sorted(one.data_wait_share or 0.0 for one in by_wait)
    shown = [numbers.share(waits[round(part * (len(waits) - 1))]).text for part in _QUANTILES]
    return Paragraph(Text(f"Data wait of {len(waits)} ranks: {', '.join(shown)} (least, quartiles, most)"))
