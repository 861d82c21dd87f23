"""The measured gain of each stage if it were free: a chart and tables."""

from __future__ import annotations

from dataclasses import dataclass

from loaderbench.diagnosis.bottlenecks import NO_GAIN, NOT_SIGNIFICANT, gain_in_words
from loaderbench.diagnosis.wording import label_of
from loaderbench.diagnosis.worker_settings import KEY, setting_in_words
from loaderbench.records import Interval, RunRecord, WorkerSetting, config_label
from loaderbench.report import numbers, style, words
from loaderbench.report.model import Chart, Column, Fact, Facts, Json, Row, Section, Table, Text
from loaderbench.report.view import View

_TITLE = "If a stage were free"
_KEYS = ("bottlenecks.", KEY)
_HOW = (
    "In each row, one stage replays kept results instead of computing them. Trials are interleaved with the unmodified "
    "loader, without a consumer. A gain below 0 means that replaying costs more than the stage."
)

_OTHERS = "Worker settings that the sweep did not cover, interleaved with the unmodified loader."


@dataclass(frozen=True)
class _Freed:
    """A row: a stage, or at depth 1 a named transform."""

    name: str
    rate: Interval
    gain: Interval
    depth: int = 0


def section(view: View) -> Section | None:
    """The gains, the largest first; `None` if no freed stages or other workers were measured."""
    rows, others = _rows(view.run), _other_workers(view.run)
    if not (rows or others):
        return None
    missing = _missing(view.run)
    with_interval = [one for one in rows if one.gain.lo is not None]
    charts = (_chart(with_interval),) if with_interval else ()
    tables = (*([_table(rows)] if rows else []), *others)
    blocks = (*charts, *tables, *([Facts(missing)] if missing else []))
    return Section(
        id="bottlenecks",
        title=_TITLE,
        label="If free",
        blocks=blocks,
        glance=(*tables, *missing),
        in_markdown=True,
        only_verbose=True,
    )


def _rows(run: RunRecord) -> list[_Freed]:
    rows: list[_Freed] = []
    for bottleneck in run.bottlenecks:
        rows.append(_Freed(label_of(bottleneck.stage), bottleneck.samples_per_s_if_free, bottleneck.gain_if_free))
        rows += [
            _Freed(words.plain(part.name, words.NAME_LIMIT), part.samples_per_s_if_free, part.gain_if_free, 1)
            for part in bottleneck.parts
        ]
    return rows


def _table(rows: list[_Freed]) -> Table:
    columns = (Column("Stage"), Column("Gain if free", numeric=True), Column("Samples/s if free", numeric=True))
    drawn = tuple(Row((Text(one.name), _gain(one.gain), numbers.interval(one.rate)), depth=one.depth) for one in rows)
    return Table("Gain vs the unmodified loader, by stage", columns, drawn, note=_HOW)


def _other_workers(run: RunRecord) -> tuple[Table, ...]:
    """The worker settings measured alongside the stages; empty if there are none."""
    columns = (Column("Setting"), Column("Gain", numeric=True), Column("Samples/s", numeric=True))
    rows = tuple(
        Row((Text(config_label(one.change)), _gain_of_setting(one), numbers.interval(one.samples_per_s)))
        for one in run.worker_settings
    )
    return (Table("Other workers vs the unmodified loader", columns, rows, note=_OTHERS),) if rows else ()


def _gain_of_setting(one: WorkerSetting) -> Text:
    gain = numbers.gain(one.gain.est, one.gain.lo, one.gain.hi)
    text = setting_in_words(one)
    return Text(f"{text} ({gain.detail})") if text == NOT_SIGNIFICANT else gain


def _gain(ratio: Interval) -> Text:
    gain = numbers.gain(ratio.est, ratio.lo, ratio.hi)
    text = gain_in_words(ratio)
    return Text(f"{text} ({gain.detail})") if text in (NOT_SIGNIFICANT, NO_GAIN) else gain


def _missing(run: RunRecord) -> tuple[Fact, ...]:
    """Why other stages and settings are not in the tables: a line for each reason."""
    by_reason: dict[str, list[str]] = {}
    for key, why in run.not_measured.items():
        if key.startswith(_KEYS):
            by_reason.setdefault(why, []).append(_name(key))
    return tuple(
        Fact("Not measured", words.sentence(f"{', '.join(stages)}: {why}")) for why, stages in by_reason.items()
    )


def _name(key: str) -> str:
    """The displayed name of a setting, a stage or a part of a stage."""
    section, _, name = key.partition(".")
    if section == KEY.rstrip("."):
        return words.plain(name, words.NAME_LIMIT)
    stage, _, part = name.partition("/")
    return words.plain(part or label_of(stage), words.NAME_LIMIT)


def _chart(rows: list[_Freed]) -> Chart:
    """Bars of the gains in percent with their intervals, the largest at the top.

    Stages without an interval are left out.
    """
    gains = [_percent(one.gain.est) for one in rows]
    bars: Json = {
        "type": "bar",
        "orientation": "h",
        "x": gains,
        "y": list(range(len(rows))),  # two rows can have one name
        "text": [style.safe(f"{one.name}: {_gain(one.gain).text}") for one in rows],
        "hovertemplate": "%{text}<extra></extra>",
        "textposition": "none",
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [_percent(one.gain.hi) - gain for one, gain in zip(rows, gains, strict=True)],
            "arrayminus": [gain - _percent(one.gain.lo) for one, gain in zip(rows, gains, strict=True)],
        },
    }

    names: Json = {"tickmode": "array", "tickvals": bars["y"], "ticktext": [style.safe(one.name) for one in rows]}

    def layout(theme: str) -> Json:
        return {
            "margin": {"l": 150, "r": 16, "t": 16, "b": 56},
            "xaxis": {"title": style.axis_title("gain if free, %"), **style.axis(theme)},
            "yaxis": {**style.axis(theme), **names, "autorange": "reversed"},
            "showlegend": False,
        }

    return Chart(
        name="bottlenecks",
        label="Gain of each stage if it were free",
        caption="Error bars: 95% intervals over rounds. An interval that includes 0 is not significant.",
        figures=(style.figure([bars], layout, 120 + 36 * len(rows)),),
    )


def _percent(ratio: float | None) -> float:
    return ((1.0 if ratio is None else ratio) - 1) * 100
