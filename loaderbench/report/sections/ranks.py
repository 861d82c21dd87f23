"""The ranks of a distributed training: each rank's data wait and verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from loaderbench.diagnosis.slow_steps import BACKWARD, REST
from loaderbench.records import HostUse, Rank
from loaderbench.report import numbers, style, words
from loaderbench.report.model import Block, Chart, Column, Details, Json, Paragraph, Row, Section, Table, Text
from loaderbench.report.view import View

MOST_ROWS = 64
_SLOWEST = 10
_QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)
_MARKERS: tuple[Json, ...] = ({}, {"pattern": {"shape": "/"}}, {"color": "rgba(128,128,128,0.25)"})
_TOGETHER = "Ranks that synchronize in each step wait for the one whose batch comes last."
_ESTIMATED = "Waits for other ranks are estimated: the backward pass of each, minus the shortest of all."
_MEDIAN = "Median trial of the best config, by samples/s. During training, all ranks wait for the slowest."
_SHARE = "share of step time"
_COMPARED_PARTS = ("forward", BACKWARD, REST)
_BAR_PX, _THIN_PX, _EDGES_PX = 26, 16, 84


def section(view: View) -> Section | None:
    """A table of all ranks, or of the slowest of many; `None` outside distributed training."""
    ranks = view.run.ranks
    if not ranks:
        return None
    known = [one for one in ranks if one.data_wait_share is not None] if view.has_data_wait else []
    slowest = _slowest(ranks, with_waits=bool(known))
    every = _table("Ranks", ranks, with_waits=view.has_data_wait)
    caption = _TOGETHER if view.profile else _MEDIAN
    if any(one.is_wait_estimated for one in ranks):
        caption = f"{caption} {_ESTIMATED}"
    if len(ranks) <= _SLOWEST:
        blocks: tuple[Block, ...] = (*_chart(known, caption), every)
    elif len(ranks) <= MOST_ROWS:
        blocks = (*_chart(known, caption), slowest, Details("All ranks", (every,), len(ranks)))
    else:
        blocks = (*_spread(known), *_chart(_by_wait(known)[:_SLOWEST], caption), slowest)
    glance = every if len(ranks) <= _SLOWEST else slowest
    of_hosts = _hosts(view.run.hosts, view.run.all_hosts)
    return Section(
        id="ranks", title="Ranks", label="Ranks", blocks=(*blocks, *of_hosts), glance=(glance, *of_hosts),
        in_markdown=True,
    )  # fmt: skip


def _by_wait(ranks: Sequence[Rank]) -> list[Rank]:
    """The ranks by data wait, the longest first and unknown ones last."""
    return sorted(ranks, key=lambda one: (one.data_wait_share is None, -(one.data_wait_share or 0.0)))


def _slowest(ranks: Sequence[Rank], *, with_waits: bool) -> Table:
    """The ranks with the longest data waits, or without any, those with the lowest rates."""
    if with_waits:
        return _table("Ranks that wait most for data", _by_wait(ranks)[:_SLOWEST], with_waits=True)
    by_rate = sorted(ranks, key=lambda one: (one.samples_per_s is None, one.samples_per_s or 0.0))
    return _table("Slowest ranks", by_rate[:_SLOWEST], with_waits=False)


def _hosts(hosts: Sequence[HostUse], together: HostUse | None) -> tuple[Table, ...]:
    """A table of machines, limited to the largest readers, with a row for their sum; empty for one machine."""
    if together is None:
        return ()
    shown = (
        hosts if len(hosts) <= _SLOWEST else sorted(hosts, key=lambda one: -(one.read_bytes_per_s or 0.0))[:_SLOWEST]
    )
    columns = (
        Column("Host"),
        Column("Ranks", numeric=True),
        Column("Samples/s", numeric=True),
        Column("Reads", numeric=True, title="bytes requested by the loading processes, including page-cache hits"),
    )
    return (Table("Hosts", columns, tuple(map(_host, (*shown, together)))),)


def _host(one: HostUse) -> Row:
    return Row(
        (
            words.outside(one.host, words.NAME_LIMIT) if one.host else Text("all hosts"),
            Text(str(one.ranks)),
            numbers.quantity(one.samples_per_s, reason=one.not_measured.get("samples_per_s")),
            numbers.memory_rate(one.read_bytes_per_s, one.not_measured.get("read_bytes_per_s")),
        )
    )


def _chart(ranks: Sequence[Rank], caption: str) -> tuple[Chart, ...]:
    """A bar for each rank, divided into its own data wait, the wait for other ranks, and the rest of its step.

    Empty without ranks. Their data waits must be known.
    """
    if not ranks:
        return ()
    labels = [_label(one, ranks) for one in ranks]
    own = [one.data_wait_share or 0.0 for one in ranks]
    others = [one.rank_wait_share or 0.0 for one in ranks]
    rest = [max(0.0, 1 - wait - other) for wait, other in zip(own, others, strict=True)]
    parts = [("data wait", own), ("wait for other ranks", others), ("rest of the step", rest)]
    traces: list[Json] = [
        {
            "type": "bar",
            "orientation": "h",
            "name": name,
            "y": labels,
            "x": [round(100 * share, 2) for share in shares],
            "marker": marker,
            "hovertemplate": "%{y}: " + name + " %{x:.3g}%<extra></extra>",
        }
        for (name, shares), marker in zip(parts, _MARKERS, strict=True)
        if any(shares)
    ]

    def layout(theme: str) -> Json:
        share = {**style.axis(theme), "title": style.axis_title("Share of step time"), "ticksuffix": "%"}
        return {
            "barmode": "stack",
            "bargap": 0.3,
            "legend": {**style.LEGEND, "traceorder": "normal"},
            "margin": {"l": 8, "r": 8, "t": 32, "b": 8},
            "xaxis": {**share, "range": [0, 100]},
            "yaxis": {**style.axis(theme), "autorange": "reversed", "type": "category"},
        }

    figure = style.figure(traces, layout, _EDGES_PX + (_BAR_PX if len(ranks) <= _SLOWEST else _THIN_PX) * len(ranks))
    return (Chart(name="ranks", label="Step time by rank", caption=caption, figures=(figure,)),)


def _label(one: Rank, ranks: Sequence[Rank]) -> str:
    """`rank 3 on b`, with the host if there are several."""
    with_host = f" on {words.plain(one.host, words.NAME_LIMIT)}" if len({other.host for other in ranks}) > 1 else ""
    return style.safe(f"rank {one.rank}{with_host}")


def _table(title: str, ranks: Sequence[Rank], *, with_waits: bool) -> Table:
    """A row for each rank. Columns for host, device and waits for other ranks are left out if empty."""
    columns: tuple[tuple[Column, Callable[[Rank], Text], bool], ...] = (
        (Column("Rank", numeric=True), lambda one: Text(str(one.rank)), True),
        (Column("Host"), lambda one: words.outside(one.host, words.NAME_LIMIT), any(one.host for one in ranks)),
        (Column("Device"), lambda one: Text(one.device or ""), any(one.device for one in ranks)),
        (Column("Samples/s", numeric=True), _rate, True),
        (Column("Data wait", numeric=True, title=_SHARE), _data_wait, with_waits),
        (
            Column("Wait for ranks", numeric=True, title=_SHARE),
            lambda one: numbers.share(one.rank_wait_share, one.not_measured.get("rank_wait_share")),
            with_waits and any(one.rank_wait_share is not None for one in ranks),
        ),
        *(_step_part(part, ranks) for part in _COMPARED_PARTS),
        (Column("Verdict", prose=True), _verdict, True),
    )
    shown = [(column, value) for column, value, is_shown in columns if is_shown]
    rows = tuple(Row(tuple(value(one) for _, value in shown)) for one in ranks)
    return Table(title, tuple(column for column, _ in shown), rows)


def _rate(one: Rank) -> Text:
    return numbers.quantity(one.samples_per_s, reason=one.not_measured.get("samples_per_s"))


def _data_wait(one: Rank) -> Text:
    return numbers.share(one.data_wait_share, one.not_measured.get("data_wait_share"))


def _step_part(part: str, ranks: Sequence[Rank]) -> tuple[Column, Callable[[Rank], Text], bool]:
    title = "share of step time; includes waiting for the gradients of other ranks" if part == BACKWARD else _SHARE
    return (
        Column(part.capitalize(), numeric=True, title=title),
        lambda one: numbers.share(one.step_parts.get(part)),
        any(part in one.step_parts for one in ranks),
    )


def _verdict(one: Rank) -> Text:
    bound = one.verdict.bound
    return Text(one.verdict.headline if bound == "unknown" else f"{bound}-bound: {one.verdict.headline}")


def _spread(ranks: Sequence[Rank]) -> tuple[Paragraph, ...]:
    """Quartiles of the data wait over many ranks; empty without any."""
    waits = sorted(one.data_wait_share for one in ranks if one.data_wait_share is not None)
    if not waits:
        return ()
    shown = [numbers.share(waits[round(part * (len(waits) - 1))]).text for part in _QUANTILES]
    return (Paragraph(Text(f"Data wait of {len(waits)} ranks: {', '.join(shown)} (least, quartiles, most)")),)
