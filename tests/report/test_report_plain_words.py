"""The words of the report: the glossary, and the phrases that must not come back."""

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace

import pytest
import run_factory as runs
import run_profiles as profiles
from blocks import ids
from prose import long_sentences, texts_of_template, words, wrong_words
from run_recorded import NAMES, recorded
from test_report_isolation import taken_apart

from loaderbench.glossary import GLOSSARY, of_report
from loaderbench.records import Kind, Measured, RunRecord
from loaderbench.report.document import build_document
from loaderbench.report.html import asset, environment
from loaderbench.report.model import Document
from loaderbench.report.sections.recommendations import Snippet
from loaderbench.report.sections.trials import Download

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


DOCUMENTS = {**RUNS, **{name: functools.partial(recorded, name) for name in NAMES}}

NOT_PROSE = (Download, Snippet)
NOT_READ = {"id", "anchor", "look", "logs", "message"}
"""Fields that name a place, and what a failed trial printed."""


def drawn(run: RunRecord) -> Document:
    return build_document(run, runs.timeline(run))


def strings(value: object, *, saved: bool = False) -> Iterator[str]:
    """Every string in a report, but no code, no file to download and no name of a place; all of a `saved` record."""
    if isinstance(value, str):
        yield value
    elif is_dataclass(value) and (saved or not isinstance(value, NOT_PROSE)):
        for field in fields(value):
            if saved or field.name not in NOT_READ:
                yield from strings(getattr(value, field.name), saved=saved)
    elif isinstance(value, Mapping):
        for held in value.values():
            yield from strings(held, saved=saved)
    elif isinstance(value, list | tuple):
        for held in value:
            yield from strings(held, saved=saved)


def given(name: str, run: RunRecord) -> set[str]:
    """The texts that a run was saved with: an older version wrote those that were recorded, a test those of `RUNS`."""
    saved = fields(RunRecord if name in RUNS else Measured)
    held = (text for field in saved for text in strings(getattr(run, field.name), saved=True))
    return {" ".join(text.split()) for text in held if words(text) > 2}


@functools.cache  # reports share most of their texts
def wrong(text: str) -> list[str]:
    return [*wrong_words(text, in_report=True), *long_sentences(text)]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_sentence_of_a_report_is_short_and_plain(name: str) -> None:
    run = DOCUMENTS[name]()
    found = {" ".join(text.split()) for text in strings(drawn(run))}
    suspects = [text for text in found if wrong(text)]
    saved = sorted(given(name, run), key=len, reverse=True) if suspects else []
    assert len(found) > 20
    assert [text for text in suspects if wrong(without(saved, text))] == []


def without(saved: Sequence[str], text: str) -> str:
    """A text with a piece of code for each text that the run was saved with; nothing of one that was cut."""
    if text.endswith("\u2026") and any(one.startswith(text[:-1].rstrip()) for one in saved):
        return ""
    for one in saved:
        text = re.sub(re.escape(one.rstrip(".")), "\N{WHITE SQUARE}", text, flags=re.IGNORECASE)
    return text


@pytest.mark.parametrize("make", RUNS.values(), ids=RUNS)
def test_the_title_of_a_section_is_a_label(make: Callable[[], RunRecord]) -> None:
    titles = [section.title for section in drawn(make()).sections if section.blocks]
    assert titles
    assert not [
        title for title in titles if len(title.split()) > 4 or title != title[0].upper() + title[1:].rstrip(".")
    ]


@pytest.mark.parametrize("name", environment().list_templates(extensions=["html"]))
def test_no_template_uses_a_phrase_that_must_be_read_twice(name: str) -> None:
    assert [found for text in texts_of_template(str(asset(name))) for found in wrong(text)] == []


def test_no_text_of_the_script_uses_a_phrase_that_must_be_read_twice() -> None:
    texts = re.findall(r'"([^"\n]*)"|`([^`]*)`', str(asset("page.js")))
    assert len(texts) > 20
    assert [found for text in texts for found in wrong(" ".join(text))] == []


@pytest.mark.parametrize("kind", ["sweep", "profile"])
def test_a_term_has_one_meaning_in_a_kind_of_run(kind: Kind) -> None:
    names = Counter(term.name for term in of_report(kind))
    assert names
    assert max(names.values()) == 1
    assert all(term.used in ("any", kind) for term in of_report(kind))


def test_a_meaning_is_short_and_a_sentence() -> None:
    for term in GLOSSARY:
        assert term.meaning.endswith(".")
        assert wrong(term.meaning) == []


def test_the_glossary_is_at_the_end_of_every_report() -> None:
    for run in (runs.typical(), profiles.traced()):
        document = build_document(run)
        assert ids(document)[-1] == "about"
        assert {term.meaning for term in of_report(run.kind)} <= set(strings(document.sections[-1]))


def test_a_wrong_word_of_a_conclusion_is_found_and_one_that_was_recorded_is_not() -> None:
    name = "example_two_cores"
    run = recorded(name)
    told = replace(run, verdict=replace(run.verdict, headline="decode changed its colour"))
    found = [text for text in strings(drawn(told)) if wrong(text)]
    saved = sorted(given(name, told), key=len, reverse=True)
    assert {text for text in found if wrong(without(saved, text))} == {
        "INPUT-BOUND (high confidence): decode changed its colour"
    }
