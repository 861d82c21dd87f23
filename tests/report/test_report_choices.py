"""Which configurations can be chosen on the page, and what it then says of them."""

from dataclasses import replace

import run_factory as runs

from loaderbench.report.choices import MOST_CHOICES, choices, first_shown
from loaderbench.report.document import build_document
from loaderbench.report.representative import representative


def test_every_configuration_that_ran_can_be_chosen_under_its_number_in_the_run() -> None:
    run = runs.typical()
    document = build_document(run, runs.timeline(run))

    assert sorted(choice.number for choice in document.choices) == list(range(8))
    cells = [cell for facet in document.sweep.facets for row in facet.rows for cell in row.cells]
    assert [cell.choice for cell in cells] == list(range(8))
    assert {row.choice for row in document.ranking.rows} == set(range(8))
    assert {trial.choice for trial in document.timeline.trials} == set(range(8))


def test_the_first_shown_is_the_best_and_says_so() -> None:
    document = build_document(runs.typical())

    assert document.shown.role == "the best configuration"
    assert document.choices[0] is document.shown
    assert document.choices[1].role == "the baseline"
    assert document.inside is document.shown.inside


def test_without_a_best_the_one_that_looked_fastest_is_shown() -> None:
    document = build_document(runs.without_best())

    assert document.shown.role == "the configuration that looked fastest"


def test_a_choice_is_told_of_the_trial_in_the_middle_of_its_rounds() -> None:
    run = runs.typical()
    own = [t for t in run.trials if t.config == run.best.config]
    middle = sorted(own, key=lambda t: t.samples_per_s)[1]

    assert representative(own) is middle
    assert middle.id in build_document(run).shown.inside.subject.text


def test_a_trial_that_was_completed_stands_for_those_that_were_not() -> None:
    run = runs.typical()
    own = [t for t in run.trials if t.config == run.best.config]
    mixed = [replace(own[0], status="failed", samples_per_s=None), own[1]]

    assert representative(mixed) is own[1]
    assert representative(mixed[:1]).status == "failed"
    assert representative([]) is None


def test_what_failed_says_how_and_how_often() -> None:
    document = build_document(runs.partly_failed())
    failed = [choice for choice in document.choices if choice.missing]

    assert [choice.missing.text for choice in failed] == [
        "Nothing is known of its inside: worker killed in 3 of 3 trials."
    ]
    assert failed[0].inside is None


def test_one_configuration_leaves_nothing_to_choose() -> None:
    document = build_document(runs.one_trial())

    assert document.choices == ()
    assert document.inside is not None


def test_a_very_large_sweep_offers_its_most_interesting_configurations() -> None:
    run = runs.typical()
    many = tuple(replace(run.configurations[i % 8], rank=i + 1) for i in range(400))
    run = replace(run, configurations=many)
    found = choices(run, {})

    assert len(found) == MOST_CHOICES
    assert first_shown(run, found) is found[0]
