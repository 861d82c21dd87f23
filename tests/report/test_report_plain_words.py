"""The words of the report: the glossary, and the phrases that must not come back."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, is_dataclass

import pytest
import run_factory as runs
import run_profiles as profiles
from blocks import ids
from test_report_isolation import taken_apart

from loaderbench.glossary import GLOSSARY, of_report
from loaderbench.records import Kind, RunRecord
from loaderbench.report.document import build_document
from loaderbench.report.html import asset, environment
from loaderbench.report.model import Document, Section
from loaderbench.report.sections.trials import Download

ELSEWHERE = {"verdict", "key-figures", "recommendations", "sweep"}
"""Sections that also show the words of a recorded run."""

GONE = re.compile(
    r"\b(beside|dearest|told|tells|let through|so that|stands?|stood|mended|anew|none seen|ran dry|as if it were|"
    r"taken away|files in memory|files evicted|less the slower|dataset itself|own cost|good to know|nothing beats|"
    r"speaks for|the same as a table|this page|on the page|allotted|rungs?|ladder|remed(y|ies)|"
    r"colours?|neighbours?|normalis\w+|synchronis\w+|optimis\w+)\b|\d %",
    re.IGNORECASE,
)
LONGEST = 25
RUNS = {
    "a sweep": runs.typical,
    "isolation runs": taken_apart,
    "a run on GPUs": runs.gpu_run,
    "failed trials": runs.partly_failed,
    "one round": runs.one_round,
    "a run without a best": runs.without_best,
    "a traced profile": profiles.traced,
    "a profile without workers": profiles.main_process,
    "an untraced profile": profiles.untraced,
}


def strings(value: object) -> Iterator[str]:
    """Every string in a record, those of figures too, but not the files to download."""
    if isinstance(value, str):
        yield value
    elif is_dataclass(value) and not isinstance(value, Download):
        for field in fields(value):
            yield from strings(getattr(value, field.name))
    elif isinstance(value, dict):
        for held in value.values():
            yield from strings(held)
    elif isinstance(value, list | tuple):
        for held in value:
            yield from strings(held)


def own(section: Section) -> bool:
    return section.id not in ELSEWHERE


def drawn(run: RunRecord) -> Document:
    return build_document(run, runs.timeline(run))


def sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.:;!?])\s+", text)


@pytest.mark.parametrize("make", RUNS.values(), ids=RUNS)
def test_no_section_uses_a_phrase_that_must_be_read_twice(make: object) -> None:
    assert callable(make)
    found = [text for section in filter(own, drawn(make()).sections) for text in strings(section)]
    assert len(found) > 20
    assert not [text for text in found if GONE.search(text)]


@pytest.mark.parametrize("make", RUNS.values(), ids=RUNS)
def test_no_sentence_of_a_section_is_longer_than_25_words(make: object) -> None:
    assert callable(make)
    found = [text for section in filter(own, drawn(make()).sections) for text in strings(section)]
    assert not [one for text in found for one in sentences(text) if len(one.split()) > LONGEST]


@pytest.mark.parametrize("make", RUNS.values(), ids=RUNS)
def test_the_title_of_a_section_is_a_label(make: object) -> None:
    assert callable(make)
    titles = [section.title for section in filter(own, drawn(make()).sections) if section.blocks]
    assert titles
    assert not [
        title for title in titles if len(title.split()) > 4 or title != title[0].upper() + title[1:].rstrip(".")
    ]


@pytest.mark.parametrize("name", [*environment().list_templates(extensions=["html"]), "page.js", "page.css"])
def test_no_template_uses_a_phrase_that_must_be_read_twice(name: str) -> None:
    assert not GONE.search(re.sub(r"{%.*?%}", "", str(asset(name))))


@pytest.mark.parametrize("kind", ["sweep", "profile"])
def test_a_term_has_one_meaning_in_a_kind_of_run(kind: Kind) -> None:
    words = Counter(term.name for term in of_report(kind))
    assert words
    assert max(words.values()) == 1
    assert all(term.used in ("any", kind) for term in of_report(kind))


def test_a_meaning_is_short_and_a_sentence() -> None:
    for term in GLOSSARY:
        assert term.meaning.endswith(".")
        assert all(len(one.split()) <= LONGEST for one in sentences(term.meaning))
        assert not GONE.search(term.meaning)


def test_the_glossary_is_at_the_end_of_every_report() -> None:
    for run in (runs.typical(), profiles.traced()):
        document = build_document(run)
        assert ids(document)[-1] == "about"
        assert {term.meaning for term in of_report(run.kind)} <= set(strings(document.sections[-1]))
