"""Where loading time goes, call by call: the stacks of the threads that load, drawn downwards from the stage."""

from __future__ import annotations

from collections.abc import Sequence

from loaderbench.diagnosis.hotspots import stack_shares
from loaderbench.report import numbers, style, words
from loaderbench.report.model import Chart, Column, Details, Json, Row, Section, Table, Text, data_table
from loaderbench.report.stack_tree import Node, shown_trials, tree_of
from loaderbench.report.view import View

_NARROWEST = 0.004  # of the whole: less cannot be seen
_ROW_PX, _EDGE_PX = 24, 16
_COLUMNS = (Column("Call", prose=True), Column("Line"), Column("Share", numeric=True, title="of loading time"))
_INDENT = "\u00a0\u00a0"

Nodes = Sequence[tuple[int, Node]]


def section(view: View) -> Section | None:
    """The chart; `None` where no stacks were looked at."""
    trials = shown_trials(view)
    if not trials:
        return None
    shown = [(depth, node) for depth, node in tree_of(stack_shares(trials)).walk() if node.share >= _NARROWEST]
    stacks = numbers.count(sum(trial.code_looks.looks for trial in trials if trial.code_looks), "stack")
    caption = f"The width of a call is its share of loading time, from {stacks}"
    chart = Chart(
        name="flame-graph",
        label="Loading time by call",
        caption=f"{caption}. Select a call to enlarge it.",
        figures=(_figure(shown),),
    )
    return Section(id="flame-graph", title="Loading time by call", label="Flame graph", blocks=(chart, _numbers(shown)))


def _figure(shown: Nodes) -> Json:
    """An icicle of plotly's: the stages have a color each."""
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
    """Without the calls below it that are drawn."""
    drawn = sum(child.share for child in node.below.values() if child.share >= _NARROWEST)
    return max(0.0, round(node.share - drawn, 6))


def _parents(shown: Nodes) -> list[str]:
    """The id of the call above each; empty for the root."""
    path: list[str] = []
    found = []
    for number, (depth, _) in enumerate(shown):
        del path[depth:]
        found.append(path[-1] if path else "")
        path.append(str(number))
    return found


def _numbers(shown: Nodes) -> Details:
    rows = tuple(
        Row((Text(_INDENT * depth + _name(node)), Text(_place(node)), numbers.share(node.share)))
        for depth, node in shown
    )
    return data_table(Table("Loading time by call", _COLUMNS, rows))


def _name(node: Node) -> str:
    if node.frame is not None:
        return words.plain(node.name, words.LABEL_LIMIT)
    return words.stage(node.name).text if node.name != "loading" else "all loading"


def _place(node: Node) -> str:
    """Its line, and the code in it where that is the user's."""
    if node.frame is None:
        return ""
    frame = node.frame
    return words.plain(f"{frame.file}:{frame.line} {frame.text}".strip(), words.LABEL_LIMIT)
