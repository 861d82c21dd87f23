"""Whatever the facts are, no sentence of a verdict contradicts another, nor the facts."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from random_facts import all_facts

from loaderbench.diagnosis.cpu_use import cpus_left
from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.limits import disturbed
from loaderbench.diagnosis.ranking import Subject
from loaderbench.diagnosis.shortage import Shortage
from loaderbench.diagnosis.thresholds import PART_OF_CPUS, SPARE_CPUS
from loaderbench.diagnosis.verdict import decide
from loaderbench.records import Interval, Verdict

ROUNDED = 0.11  # two figures with one decimal each
SHORTAGE = Shortage(
    shared=True, limit_bytes=64 << 20, config={"num_workers": 4}, needed_bytes=150 << 20, most_bytes=150 << 20
)


def verdict_of(facts: Facts, shortage: Shortage | None = None) -> Verdict:
    wait = Interval(facts.wait_share, facts.wait_share, facts.wait_share)
    rate = Interval(facts.samples_per_s, facts.samples_per_s, facts.samples_per_s)
    subject = Subject({"num_workers": facts.workers}, rate, wait, is_best=True, facts=facts)
    return decide(subject, "emulated", 1000.0, 0, shortage=shortage)


def figure(pattern: str, text: str) -> float | None:
    found = re.search(pattern, text)
    return float(found[1]) if found else None


def check_that_no_more_cpus_are_free_and_busy_than_there_are(facts: Facts) -> None:
    found = verdict_of(facts)
    free = figure(r"([\d.]+) CPUs free", found.headline)
    for line in found.evidence:
        busy, of = figure(r"([\d.]+) of [\d.]+ CPUs? busy", line), figure(r"[\d.]+ of ([\d.]+) CPUs? busy", line)
        spinning = figure(r"([\d.]+) of them spinning", line) or 0.0
        if free is not None and busy is not None and of is not None:
            assert free <= of - busy + spinning + ROUNDED, (found.headline, line)


def check_that_cpus_are_saturated_only_where_this_program_leaves_none(facts: Facts) -> None:
    found = verdict_of(facts)
    if "CPUs saturated" in found.headline:
        assert cpus_left(facts) < max(SPARE_CPUS, PART_OF_CPUS * facts.cpus)
        assert not disturbed(facts)
    if found.limit == "workers" and facts.own_cpus is not None:
        assert "saturated" not in found.headline


def check_that_more_workers_fail_to_fit_only_where_they_would_help(facts: Facts) -> None:
    found = verdict_of(facts, SHORTAGE)
    said = "more workers do not fit in /dev/shm (64 MiB)" in found.headline
    assert said == (found.limit == "workers")
    assert any(part.about == "shortage" for part in found.evidence_parts) == (found.bound != "compute")


def check_that_no_share_is_above_all_and_no_figure_is_missing(facts: Facts) -> None:
    found = verdict_of(facts)
    for line in (found.headline, *found.evidence, *found.against):
        assert not re.search(r"\bnan\b|\binf\b|None|-\d", line), line
        of_cpu_time = figure(r"(\d+)% of CPU time", line)
        assert of_cpu_time is None or of_cpu_time <= 100, line


CHECKS = (
    check_that_no_more_cpus_are_free_and_busy_than_there_are,
    check_that_cpus_are_saturated_only_where_this_program_leaves_none,
    check_that_more_workers_fail_to_fit_only_where_they_would_help,
    check_that_no_share_is_above_all_and_no_figure_is_missing,
)  # each looks at the same facts: to draw them takes longer than to look


@settings(max_examples=200)
@given(all_facts)
def test_no_sentence_contradicts_another_nor_the_facts(facts: Facts) -> None:
    for check in CHECKS:
        check(facts)


@pytest.mark.slow
@settings(max_examples=1_000)
@given(all_facts)
def test_nor_does_one_of_very_many(facts: Facts) -> None:
    for check in CHECKS:
        check(facts)
