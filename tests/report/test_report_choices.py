"""Which configurations can be chosen on the page, and what it then says of them."""

from dataclasses import replace
from xml.etree import ElementTree

import run_factory as runs
from blocks import ids, ranking, the, within

from loaderbench.records import Readings
from loaderbench.report.document import build_document
from loaderbench.report.junit import render_junit
from loaderbench.report.model import Paragraph
from loaderbench.report.sections.heat_map import HeatMap
from loaderbench.report.sections.timeline import Timeline
from loaderbench.report.view import MOST_CHOICES, View, representative


def test_every_configuration_that_ran_can_be_chosen_under_its_number_in_the_run() -> None:
    run = runs.typical()
    document = build_document(run, runs.timeline(run))

    heat_map = the(document, HeatMap)
    assert sorted(choice.number for choice in heat_map.choices) == list(range(8))
    cells = [cell for facet in heat_map.facets for row in facet.rows for cell in row.cells]
    assert [cell.choice for cell in cells] == list(range(8))
    assert {row.choice for row in ranking(document).rows} == set(range(8))
    assert {trial.choice for trial in the(document, Timeline).trials} == set(range(8))


def test_the_first_shown_is_the_best_and_says_so() -> None:
    document = build_document(runs.typical())

    found = the(document, HeatMap)

    assert found.shown.role == "best config"
    assert found.choices[0] is found.shown
    assert found.choices[1].role == "baseline"
    assert [section for section in document.sections if section.of_choice] == list(found.shown.inside)


def test_without_a_best_the_one_that_looked_fastest_is_shown() -> None:
    document = build_document(runs.without_best())

    assert the(document, HeatMap).shown.role == "fastest estimate"


def test_a_choice_is_told_of_the_trial_in_the_middle_of_its_rounds() -> None:
    run = runs.typical()
    own = [t for t in run.trials if t.config == run.best.config]
    middle = sorted(own, key=lambda t: t.samples_per_s)[1]

    assert representative(own) is middle
    assert middle.id in within(build_document(run), "inside", Paragraph)[0].text.text


def test_a_trial_that_was_completed_stands_for_those_that_were_not() -> None:
    run = runs.typical()
    own = [t for t in run.trials if t.config == run.best.config]
    mixed = [replace(own[0], status="failed", samples_per_s=None), own[1]]

    assert representative(mixed) is own[1]
    assert representative(mixed[:1]).status == "failed"
    assert representative([]) is None


def test_what_failed_says_how_and_how_often() -> None:
    document = build_document(runs.partly_failed())
    failed = [choice for choice in the(document, HeatMap).choices if choice.missing]

    assert [choice.missing.text for choice in failed] == ["Stages not measured: worker killed in 3 of 3 trials."]
    assert failed[0].inside == ()


def test_a_trial_that_timed_out_without_a_recorded_failure_counts_as_failed() -> None:
    run = runs.partly_failed()
    late = [replace(t, status="timed_out", failure=None) if t.failure else t for t in run.trials]
    run = replace(run, trials=tuple(late))
    missing = [choice.missing.text for choice in the(build_document(run), HeatMap).choices if choice.missing]

    assert missing == ["Stages not measured: timed out in 3 of 3 trials."]
    assert 'message="timed out in 3 of 3 trials"' in render_junit(run, ())


def test_junit_has_an_error_where_nothing_was_measured_and_only_there() -> None:
    run = runs.partly_failed()
    assert 'errors="0"' in render_junit(run, ())
    gone = replace(run, trials=tuple(replace(t, status="timed_out", failure=None) for t in run.trials))
    said = render_junit(gone, ())
    assert 'errors="1"' in said
    assert f'message="nothing was measured: timed out in {len(run.sweep)} of {len(run.sweep)} trials"' in said
    assert 'message="nothing was measured: no trial ran"' in render_junit(replace(run, trials=()), ())


def test_one_configuration_leaves_nothing_to_choose() -> None:
    document = build_document(runs.one_trial())

    assert document.find(HeatMap) is None
    assert "inside" in ids(document)


def test_a_very_large_sweep_offers_its_most_interesting_configurations() -> None:
    run = runs.typical()
    many = tuple(replace(run.configurations[i % 8], rank=i + 1) for i in range(400))
    view = View(replace(run, configurations=many), Readings())

    assert len(view.choices) == MOST_CHOICES
    assert view.shown == view.choices[0]


def test_junit_of_a_name_with_signs_that_xml_cannot_hold_can_be_parsed() -> None:
    text = render_junit(replace(runs.typical(), name="a\ufffeb\uffffc"), ())
    assert ElementTree.fromstring(text).get("name") == "loaderbench abc"
