"""What users read keeps the ten rules: sentences of at most 25 words, no retired phrase, no calque."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path

import pytest
from prose import (
    cells_of_markdown,
    docstring_of_module,
    long_sentences,
    paragraphs_of_comments,
    paragraphs_of_markdown,
    texts_of_source,
    texts_of_template,
    values_of,
    words,
    wrong_words,
)
from retired_phrases import RETIRED

from loaderbench.commands.app import app
from loaderbench.glossary import GLOSSARY
from loaderbench.remedies import REMEDIES

ROOT = Path(__file__).parents[1]
GLOSSARY_PAGE = "docs/reference/glossary.md"
PAGES = sorted(
    path.relative_to(ROOT)
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
)
SOURCES = sorted(
    path.relative_to(ROOT)
    for pattern in ("*.py", "report/templates/*.html")
    for path in (ROOT / "loaderbench").rglob(pattern)
)
DOCUMENTED = (
    "commands",
    "records",
    "suite/model.py",
    "profiler/profiler.py",
    "result.py",
    "session/running.py",
    "errors.py",
)
"""Docstrings that users read: the help of a command, the JSON Schema of a record, the reference of Python names."""

FIXES = {remedy.id for remedy in REMEDIES}
"""Their files have a docstring that is a page of the docs."""


COPIED = sorted(
    path.relative_to(ROOT)
    for pattern in ("examples/**/*.py", "examples/**/*.yml", "suites/*.yaml")
    for path in ROOT.glob(pattern)
)
"""Files that users copy: their comments, docstrings and texts are read, too."""

DESCRIBED = {"mkdocs.yml": "site_description", "pyproject.toml": "description"}
"""Files that say in a line what this is, and the key of that."""


def copied_texts(path: Path) -> list[str]:
    """What a reader of a file to copy reads."""
    text = (ROOT / path).read_text(encoding="utf-8")
    if path.suffix != ".py":
        return [*paragraphs_of_comments(text), *values_of(text, "name")]
    return [
        *paragraphs_of_comments(text),
        *docstring_of_module(ROOT / path),
        *texts_of_source(ROOT / path, documented=True),
    ]


def wrong_in(texts: list[str]) -> list[str]:
    """All that is wrong with some texts."""
    wrong = [f"{found!r} in: {text}" for text in texts for found in wrong_words(text)]
    return wrong + [f"{words(found)} words: {found}" for text in texts for found in long_sentences(text)]


def violations(path: Path) -> list[str]:
    """All that is wrong with the words of a file."""
    if path.suffix == ".md":
        text = (ROOT / path).read_text(encoding="utf-8")
        prose, others = list(paragraphs_of_markdown(text)), list(cells_of_markdown(text))
        others = [] if str(path) == GLOSSARY_PAGE else others  # it names what each word is not called
    elif path.suffix == ".html":
        prose, others = texts_of_template((ROOT / path).read_text(encoding="utf-8")), []
    else:
        inside = path.relative_to("loaderbench").as_posix()
        prose, others = texts_of_source(ROOT / path, documented=inside.startswith(DOCUMENTED)), []
        prose += docstring_of_module(ROOT / path) if path.stem in FIXES and "remedies" in path.parts else []
    return [*wrong_in(prose), *(f"{found!r} in: {text}" for text in others for found in wrong_words(text))]


def by_file(wrong: Callable[[Path], list[str]], paths: list[Path]) -> dict[str, list[str]]:
    """What is wrong in each of some files, without those where nothing is."""
    return {str(path): found for path in paths if (found := wrong(path))}


def folders(paths: list[Path]) -> list[Path]:
    return sorted({path.parent for path in paths})


@pytest.mark.parametrize("folder", folders([*PAGES, *SOURCES]), ids=str)
def test_the_words_of_the_files_of_a_folder_keep_the_rules(folder: Path) -> None:
    assert by_file(violations, [path for path in [*PAGES, *SOURCES] if path.parent == folder]) == {}


@pytest.mark.parametrize("folder", folders(COPIED), ids=str)
def test_the_words_of_the_files_to_copy_of_a_folder_keep_the_rules(folder: Path) -> None:
    assert by_file(lambda path: wrong_in(copied_texts(path)), [path for path in COPIED if path.parent == folder]) == {}


def test_what_is_wrong_in_the_files_of_a_folder_is_said_of_each(tmp_path: Path) -> None:
    right, wrong = tmp_path / "right.yaml", tmp_path / "wrong.yaml"
    right.write_text("# One line of words.\n")
    wrong.write_text("# It lies beside run.json.\n")
    found = by_file(lambda path: wrong_in(copied_texts(path)), [right, wrong])
    assert found == {str(wrong): ["'beside' in: It lies beside run.json."]}


@pytest.mark.parametrize("path", DESCRIBED)
def test_every_description_is_the_sentence_of_the_help(path: str) -> None:
    assert values_of((ROOT / path).read_text(encoding="utf-8"), DESCRIBED[path]) == [app.info.help]


def test_the_words_of_the_configuration_of_the_docs_keep_the_rules() -> None:
    assert wrong_in(paragraphs_of_comments((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))) == []


def test_the_glossary_is_written_out() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "glossary_page.py"))["page"]()
    assert (ROOT / GLOSSARY_PAGE).read_text(encoding="utf-8") == made, "uv run python docs/glossary_page.py"


def test_a_word_of_the_glossary_has_one_entry_in_its_place_or_one_for_each_kind_of_run() -> None:
    names = [entry.name for entry in GLOSSARY]
    assert names == sorted(names, key=str.lower)
    twice = {name for name in names if names.count(name) > 1}
    assert all({entry.used for entry in GLOSSARY if entry.name == name} == {"sweep", "profile"} for name in twice)


def test_no_word_is_also_what_another_is_not_called() -> None:
    others = [name.lower() for entry in GLOSSARY for name in entry.not_called]
    assert len(others) == len(set(others))
    assert not set(others) & {entry.name.lower() for entry in GLOSSARY}


@pytest.mark.parametrize("phrase", RETIRED)
def test_a_retired_phrase_is_found_in_prose_and_not_in_code(phrase: str) -> None:
    assert wrong_words(f"Here {phrase.replace('...', 'it all')} is said.")
    assert not [found for text in paragraphs_of_markdown(f"Here `{phrase}` is code.") for found in wrong_words(text)]


@pytest.mark.parametrize(
    "text",
    [
        "The report is next to run.json.",
        "It writes one line so that a script can read it.",
        "There is no GPU.",
        "The difference is no longer significant.",
        "PSS stands for proportional set size.",
        "The report tells you what to do, and you were told you need it.",
        "It is as fast as it is small.",
    ],
)
def test_an_english_sentence_holds_no_calque(text: str) -> None:
    assert wrong_words(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "It lies beside run.json.",
        "Nothing is won, so that it stays.",
        "It is no gate.",
        "The worker stood at it.",
        "They are decoded as they are.",
        "What must be mended?",
        "The rate that the disk lets through.",
        "It is the dearest of them.",
        "The cause cannot be told.",
    ],
)
def test_a_calque_is_found(text: str) -> None:
    assert wrong_words(text) != []


def test_a_list_item_a_heading_and_a_paragraph_are_sentences_of_their_own_and_code_and_tables_are_none() -> None:
    text = "# One\n\nTwo, `three four` five.\n\n- six\n- seven\n\n```\neight\n```\n\n| nine |\n| --- |\n| ten |\n"
    assert [words(one) for one in paragraphs_of_markdown(text)] == [1, 3, 1, 1]
    assert list(cells_of_markdown(text)) == ["nine", "ten"]


def test_a_sentence_ends_at_a_full_stop_before_a_capital_a_figure_or_code() -> None:
    words_25, words_26 = "word " * 24 + "end.", "word " * 25 + "end."
    assert long_sentences(f"{words_25} {words_25.capitalize()}") == []
    assert long_sentences(f"Short. {words_26.capitalize()} 3 more.") == [words_26.capitalize()]


def test_the_texts_of_a_source_file_are_what_it_may_print(tmp_path: Path) -> None:
    file = tmp_path / "some.py"
    file.write_text(
        '"""Not shown here."""\n'
        "def shown(name: str) -> str:\n"
        '    """What a user reads."""\n'
        "    key = 'one two'\n"
        "    return f'{name} is the dearest ' 'of them all'\n"
        "def _private() -> None:\n"
        '    """Not for any user."""\n'
    )
    printed = "\N{WHITE SQUARE} is the dearest of them all"
    assert texts_of_source(file, documented=False) == [printed]
    assert texts_of_source(file, documented=True) == ["What a user reads.", printed]


def test_the_comments_of_a_file_are_its_blocks_and_what_follows_code() -> None:
    blocks = "# One two\n# three.\n#   a command to run\n# Four five six.\n"
    text = f"{blocks}\nkey: value  # seven eight nine\n# ten `a b` eleven\n"
    found = ["One two three.", "Four five six.", "seven eight nine", "ten \N{WHITE SQUARE} eleven"]
    assert paragraphs_of_comments(text) == found


def test_the_texts_of_a_template_are_what_a_reader_sees() -> None:
    template = (
        '<p title="A hint">One {{ value }} {% if more %}two{% endif %}</p><script>var no = 1</script><li>Three</li>'
    )
    assert [" ".join(text.split()) for text in texts_of_template(template)] == [
        "A hint",
        "One \N{WHITE SQUARE} two",
        "Three",
    ]
