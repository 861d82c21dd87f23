"""A line in the table of metrics is enough for every table, the heat map and the timeline to show it."""

import csv
import io
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import run_factory as runs
from blocks import downloads, ranking, the, trials

from loaderbench.records import Interval
from loaderbench.records.metrics import METRICS, Metric
from loaderbench.report import numbers
from loaderbench.report.document import build_document
from loaderbench.report.metrics import named_with_unit, rate
from loaderbench.report.model import Value
from loaderbench.report.sections.heat_map import HeatMap
from loaderbench.report.sections.timeline_panels import kind_of
from loaderbench.report.sections.verdict import KeyFigures

ROOT = Path(__file__).parents[2]
LINE = """    Metric(id="threads", label="Threads", unit="count", over_rounds="mean", in_heat_map=True),
)
BY_ID"""
SCRIPT = """
from dataclasses import replace
import run_factory as runs
from blocks import downloads, ranking, the, trials
from loaderbench.records import TimelinePoint
from loaderbench.report.document import build_document
from loaderbench.report.sections.heat_map import HeatMap
from loaderbench.report.sections.timeline import Timeline
from loaderbench.statistics.configurations import summarize

run = runs.typical()
measured = tuple(replace(t, metrics={"threads": 7.0 + t.round}) for t in run.trials)
run = replace(run, trials=measured, configurations=summarize([c.config for c in run.configurations], measured))
document = build_document(run, [TimelinePoint(measured[2].id, float(s), "threads", 5.0 + s) for s in range(3)])
print([row.cells[-1].text for row in ranking(document).rows][:1], ranking(document).columns[-1].label)
print(trials(document).columns[-1].label, [row.cells[-1].text for row in trials(document).rows][:1])
print([metric.label for metric in the(document, HeatMap).metrics][-1])
print([title["text"] for title in the(document, Timeline).figures[0]["layout"]["dark"]["annotations"]])
print("threads" in downloads(document)[1].content.splitlines()[0].split(","))
"""


def test_a_metric_is_one_line_of_the_table(tmp_path: Path) -> None:
    copied = tmp_path / "loaderbench"
    shutil.copytree(ROOT / "loaderbench", copied, ignore=shutil.ignore_patterns("__pycache__"))
    table = copied / "records" / "metrics.py"
    table.write_text(table.read_text().replace(")\nBY_ID", LINE))
    script = tmp_path / "show.py"
    script.write_text(f"import sys\nsys.path[:0] = {[str(tmp_path), str(Path(__file__).parent)]!r}\n{SCRIPT}")
    shown = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)

    assert shown.stderr == ""
    assert shown.stdout.splitlines() == [
        "['9'] Threads",
        "Threads ['8']",
        "Threads",
        "['Threads']",
        "True",
    ]


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.id)
def test_every_metric_can_be_read_of_a_trial_and_a_configuration(metric: Metric) -> None:
    run = runs.gpu_run()
    value = metric.of_trial(run.trials[0])

    assert value is None or isinstance(value, int | float)
    if metric.over_rounds:
        found = metric.of_configuration(run.configurations[0])
        assert isinstance(found, Interval) == (metric.over_rounds in ("rate", "share"))


def test_the_csv_has_a_column_of_every_metric() -> None:
    run = runs.gpu_run()
    row = next(csv.DictReader(io.StringIO(downloads(build_document(run))[1].content)))

    assert {m.id: row[m.id] for m in METRICS} == {
        m.id: "" if (value := m.of_trial(run.trials[0])) is None else str(value) for m in METRICS
    }
    assert row["gpu_memory_used_bytes"] == str(11 * runs.GIB)


def test_page_tables_and_heat_map_call_a_metric_by_one_name() -> None:
    document = build_document(runs.gpu_run())
    labels = {metric.label for metric in METRICS}
    short = {metric.trial_label or metric.label for metric in METRICS}
    best = ranking(document)

    assert best
    assert {column.label for column in best.columns[3:]} <= labels
    assert {column.label for column in trials(document).columns[6:]} <= short
    assert {metric.label for metric in the(document, HeatMap).metrics} <= set(map(named_with_unit, METRICS))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (numbers.interval(Interval(836.0, 803.0, 870.0)), "836 samples/s (803\u2013870)"),
        (numbers.interval(Interval(836.0, None, None)), "836 samples/s (n = 1)"),
        (numbers.quantity(836.0), "836 samples/s"),
        (numbers.missing("it crashed"), "not measured: it crashed"),
    ],
)
def test_a_rate_in_a_sentence_has_its_unit_before_its_interval(value: Value, said: str) -> None:
    assert rate(value) == said


def test_the_cells_of_the_heat_map_say_their_rate_like_a_sentence() -> None:
    cell = the(runs.typical(), HeatMap).facets[0].rows[0].cells[0]
    assert cell.title == "batch_size=32 num_workers=0 pin_memory=false: 212 samples/s (206\u2013218)"


def test_the_unit_of_a_panel_names_no_whole_of_another_unit() -> None:
    waits = kind_of("data_wait_s")
    cpu = kind_of("cpu_percent_of_allotted")
    assert waits
    assert cpu
    assert (waits.title, cpu.title) == ("Data wait per batch, ms", "CPU, % of available CPUs")


@pytest.mark.parametrize(("consumer", "there"), [("emulated", True), ("none", False)])
def test_a_run_without_a_consumer_shows_no_data_wait(consumer: str, there: bool) -> None:
    document = build_document(replace(runs.typical(), consumer=consumer))
    assert ("Data wait" in [column.label for column in ranking(document).columns]) is there
    assert ("Data wait" in [figure.label for figure in the(document, KeyFigures).figures]) is there
    choices = the(document, HeatMap).choices
    assert ("Data wait" in [fact.label for choice in choices for fact in choice.facts]) is there
    [table] = [file.content for file in downloads(document) if file.name == "trials.csv"]
    assert ("data_wait_share" in table.splitlines()[0]) is there
    assert ("Data wait, % of step time" in [column.label for column in trials(document).columns]) is there
