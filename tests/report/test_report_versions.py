"""The report of two versions: trials and failures of both, the pairs that were compared, and the gates."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import run_factory as runs
from blocks import downloads, failures, trials, within

from loaderbench.conclusion import conclude
from loaderbench.records import Failure, RunRecord, SideBySide, TimeSlices, Trial, Version
from loaderbench.report.compare import comparison_markdown
from loaderbench.report.document import build_document
from loaderbench.report.junit import render_junit
from loaderbench.report.model import Table
from loaderbench.report.sections.comparison import comparison_table

BROKEN = Failure("user_code", "ValueError: broken", "Look at it.")
VERSIONS = (
    Version(side="before", name="main", suite_file="s.yaml"),
    Version(side="after", name="working tree", suite_file="s.yaml"),
)


def of_versions(pairs: int = 4) -> RunRecord:
    """A run of two equal versions with one configuration."""
    run = runs.one_trial()
    both = [
        replace(
            run.trials[0], id=f"p{number}-c0-{version.side}", role="ab", side=version.side, round=number,
            samples_per_s=200.0 + number, consumer="none",
        )
        for number in range(1, pairs + 1)
        for version in VERSIONS
    ]  # fmt: skip
    asked = SideBySide(
        versions=VERSIONS, configs=(both[0].config,), gates=(), looks=(pairs,), budget_s=180, ended="decided"
    )
    return conclude(replace(run, kind="ab", consumer="none", side_by_side=asked, trials=tuple(both)))


def failing(run: RunRecord, side: str) -> RunRecord:
    """The run, in which every trial of a side fails."""

    def found(one: Trial) -> Trial:
        failed = replace(one, status="failed", samples_per_s=None, data_wait_share=None, failure=BROKEN)
        return failed if one.side == side else one

    return conclude(replace(run, trials=tuple(map(found, run.trials))))


def test_the_trials_of_both_versions_have_a_row_with_their_side() -> None:
    document = build_document(of_versions())
    table = trials(document)
    assert [column.label for column in table.columns[:2]] == ["Trial", "Side"]
    assert [row.cells[1].text for row in table.rows] == ["before", "after"] * 4
    assert len({row.anchor for row in table.rows}) == 8
    [page] = [file.content for file in downloads(document) if file.name == "trials.csv"]
    rows = list(csv.DictReader(io.StringIO(page)))
    assert [(row["trial"], row["side"]) for row in rows[:2]] == [("p1-c0-before", "before"), ("p1-c0-after", "after")]
    assert [row["samples_per_s"] for row in rows[:2]] == ["201.0", "201.0"]


def test_other_runs_have_no_side() -> None:
    document = build_document(runs.one_trial())
    assert "Side" not in [column.label for column in trials(document).columns]
    [page] = [file.content for file in downloads(document) if file.name == "trials.csv"]
    assert "side" not in page.splitlines()[0].split(",")


def test_the_failures_of_the_earlier_version_are_shown_without_a_command_that_would_run_the_later_one() -> None:
    document = build_document(failing(of_versions(), "before"))
    (group,) = failures(document)
    assert (group.count, group.last_words.text, group.command) == ("4 trials, before", "ValueError: broken", None)
    assert len(group.trials) == 4
    assert document.state.label == "complete: 4 of 8 trials measured"


def test_the_failures_of_the_later_version_have_the_command() -> None:
    (group,) = failures(build_document(failing(of_versions(), "after")))
    assert group.count == "4 trials, after"
    assert group.command is not None
    both = failing(failing(of_versions(), "after"), "before")
    assert [group.count for group in failures(build_document(both))] == ["8 trials, before and after"]


def test_junit_has_an_error_that_names_the_version_where_no_pair_was_measured() -> None:
    assert 'errors="0"' in render_junit(of_versions(), ())
    said = render_junit(failing(of_versions(), "before"), ())
    assert 'errors="1"' in said
    assert 'message="no pair was measured: before (main): user code in 4 of 4 trials"' in said


def test_two_pairs_are_not_called_one_process() -> None:
    run = of_versions(pairs=2)
    assert run.comparison is not None
    (row,) = comparison_table(run.comparison).rows
    assert row.cells[3].text.endswith("(fewer than 3 pairs)")
    assert "n = 1" not in comparison_markdown(run.comparison, ())


def test_the_table_of_pairs_has_those_that_were_compared() -> None:
    run = of_versions()
    slices = TimeSlices(count=4, batches=40, samples=160, seconds=1.0)
    run = conclude(replace(run, trials=(replace(run.trials[0], time_slices=slices), *run.trials[1:])))
    (table,) = (found for found in within(build_document(run), "comparison", Table) if found.caption == "Pairs")
    assert [row.cells[1].text for row in table.rows] == ["2", "3", "4"]
