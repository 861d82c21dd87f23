"""Loading time by stack samples: by stage, by line of code, and by call as a flame graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from loaderbench.diagnosis.hotspots import Stack, find_hotspots, stack_shares
from loaderbench.records import Hotspot, StackFrame, StackLooks, Trial
from loaderbench.records.words import count, stage_place
from loaderbench.report import numbers, style, tables, words
from loaderbench.report.model import Breakdown, Chart, Column, Details, Json, Row, Section, Table, Text, data_table
from loaderbench.report.view import View, trials_with_stacks

_STAGES = (
    Column("Stage"),
    Column("Share", numeric=True),
    Column("On a CPU", numeric=True, title="part of the stage's time"),
)
_LINE_COLUMNS = (
    Column("Line"),
    Column("Stage"),
    Column("Share", numeric=True, title="of loading time"),
    Column("Code", prose=True),
)
LINES = "code"
_MOST_LINES = 5
_BELOW = Column("Mostly in", title="the library's function that the line called")

_NARROWEST = 0.004  # of loading time; a narrower box cannot be seen
_ROW_PX, _EDGE_PX = 24, 16
_CALL_COLUMNS = (Column("Call", prose=True), Column("Line"), Column("Share", numeric=True, title="of loading time"))
_INDENT = "\u00a0\u00a0"


def stages(trial: Trial) -> Section | None:
    """Shares of the busy stack samples by stage; `None` without stack samples."""
    looks = trial.stack_looks
    if looks is None or not looks.stages:
        return None
    title = "Loading time by stage"
    return Section(id="stacks", title=title, label="Stages", blocks=(_breakdown(title, looks),), narrow=True)


def lines(trial: Trial) -> Section | None:
    """The lines with the largest shares; `None` if no stacks were sampled."""
    hotspots = find_hotspots([trial])[:_MOST_LINES]
    if not hotspots:
        return None
    table = _lines(hotspots)
    return Section(
        id=LINES, title="Loading time by line", label="Code", blocks=(table,), glance=(table,), in_markdown=True
    )


def _breakdown(title: str, found: StackLooks) -> Breakdown:
    known = dict(sorted(found.stages.items(), key=lambda one: stage_place(one[0])))
    shares = tables.shares([looks.share for looks in known.values()])
    tones, names = tables.tones(shares), [words.stage(name) for name in known]
    rows = tuple(
        Row((name, share, numbers.share(looks.running_share)), tone=tone)
        for name, share, looks, tone in zip(names, tables.percentages(shares), known.values(), tones, strict=True)
    )
    idle = "" if found.idle_share is None else f"; workers idle in {numbers.share(found.idle_share).text} of checks"
    return Breakdown(
        title=title,
        segments=tables.segments([name.text for name in names], shares, tones),
        tables=(Table(f"{count(found.looks, 'stack')}{idle}", _STAGES, rows),),
    )


def _lines(found: Sequence[Hotspot]) -> Table:
    """A row for each line, with a column for library calls if there are any."""
    with_below = any(line.below for line in found)
    rows = tuple(
        Row(
            (
                words.outside(f"{line.path or line.file}:{line.line}", words.LABEL_LIMIT),
                words.stage(line.stage),
                tables.percentage(line.share),
                words.outside(line.text, words.LABEL_LIMIT) if line.text else Text(line.function),
                *([words.outside(line.below, words.NAME_LIMIT)] if with_below else []),
            )
        )
        for line in found
    )
    columns = (*_LINE_COLUMNS, _BELOW) if with_below else _LINE_COLUMNS
    return Table("Lines with the largest share of loading time", columns, rows)


@dataclass
class Node:
    """A stage or a call, with its share of loading time, and its callees."""

    name: str
    frame: StackFrame | None
    share: float = 0.0
    below: dict[StackFrame | str, Node] = field(default_factory=dict)

    def walk(self, depth: int = 0) -> Iterator[tuple[int, Node]]:
        """The node and its descendants, each with its depth."""
        yield depth, self
        for child in self.below.values():
            yield from child.walk(depth + 1)


Nodes = Sequence[tuple[int, Node]]


def tree_of(shares: Mapping[Stack, float]) -> Node:
    """All stacks merged into one tree. Siblings keep the order of `shares`."""
    root = Node("loading", None)
    for (stage, frames), share in shares.items():
        root.share += share
        node = root.below.setdefault(stage, Node(stage, None))
        node.share += share
        for frame in frames:
            node = node.below.setdefault(frame, Node(frame.function, frame))
            node.share += share
    return root


def flame_graph(view: View) -> Section | None:
    """The chart; `None` if no stacks were sampled."""
    trials = trials_with_stacks(view)
    if not trials:
        return None
    shown = [(depth, node) for depth, node in tree_of(stack_shares(trials)).walk() if node.share >= _NARROWEST]
    stacks = count(sum(trial.code_looks.looks for trial in trials if trial.code_looks), "stack")
    caption = f"The width of a call is its share of loading time, from {stacks}"
    chart = Chart(
        name="flame-graph",
        label="Loading time by call",
        caption=f"{caption}. Select a call to enlarge it.",
        figures=(_figure(shown),),
    )
    return Section(id="flame-graph", title="Loading time by call", label="Flame graph", blocks=(chart, _numbers(shown)))


def _figure(shown: Nodes) -> Json:
    """A Plotly icicle chart with a color for each stage."""
    trace = {
        "type": "icicle",
        "ids": list(map(str, range(len(shown)))),
        "parents": _parents(shown),
        "labels": [style.safe(_name(node)) for _, node in shown],
        "values": [_own_share(node) for _, node in shown],
        "branchvalues": "remainder",
        "sort": False,
        "tiling": {"orientation": "v", "pad": 1},
        "pathbar": {"visible": False},
        "root": {"color": "rgba(128,128,128,0.25)"},
        "customdata": [style.safe(_place(node)) for _, node in shown],
        "text": [numbers.share(node.share).text for _, node in shown],
        "textinfo": "label+text",
        "texttemplate": "%{label} %{text}",
        "hovertemplate": "%{label}<br>%{customdata}<br>%{text}<extra></extra>",
    }

    def layout(theme: str) -> Json:
        return {
            "margin": {"l": 0, "r": 0, "t": 0, "b": 0},
            "uniformtext": {"minsize": 11, "mode": "hide"},
            "iciclecolorway": style.LINES[theme],
        }

    rows = 1 + max(depth for depth, _ in shown)
    return style.figure([trace], layout, _EDGE_PX + _ROW_PX * rows)


def _own_share(node: Node) -> float:
    """The node's share without the drawn callees."""
    drawn = sum(child.share for child in node.below.values() if child.share >= _NARROWEST)
    return max(0.0, round(node.share - drawn, 6))


def _parents(shown: Nodes) -> list[str]:
    """The id of each node's caller; empty for the root."""
    path: list[str] = []
    parents = []
    for number, (depth, _) in enumerate(shown):
        del path[depth:]
        parents.append(path[-1] if path else "")
        path.append(str(number))
    return parents


def _numbers(shown: Nodes) -> Details:
    rows = tuple(
        Row((Text(_INDENT * depth + _name(node)), Text(_place(node)), numbers.share(node.share)))
        for depth, node in shown
    )
    return data_table(Table("Loading time by call", _CALL_COLUMNS, rows))


def _name(node: Node) -> str:
    if node.frame is not None:
        return words.plain(node.name, words.LABEL_LIMIT)
    return words.stage(node.name).text if node.name != "loading" else "all loading"


def _place(node: Node) -> str:
    """The node's line, with the source text if it is the user's code."""
    if node.frame is None:
        return ""
    frame = node.frame
    return words.plain(f"{frame.file}:{frame.line} {frame.text}".strip(), words.LABEL_LIMIT)
