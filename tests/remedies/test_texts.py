"""The texts of every fix: a title that says what to do, short sentences, and no word that readers stumble on."""

from __future__ import annotations

import importlib
import inspect
import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from planted_causes import CAUSES, advice, diagnosis, told as of_diagnosis
from prose import code_of_markdown, long_sentences, wrong_words
from sweeps import AXES, TODAY, answers, findings, short_of_room

from loaderbench.records import Config, Recommendation
from loaderbench.remedies import REMEDIES
from loaderbench.remedies.wording import TITLE_LIMIT, applied, phrase, retitled

VERBS = {
    "Apply", "Cache", "Choose", "Copy", "Decode", "Divide", "Draw", "Keep", "Limit", "Load", "Lower", "Move",
    "Normalize", "Open", "Pack", "Pre-resize", "Raise", "Read", "Repair", "Seed", "Send", "Set", "Share", "Simplify",
    "Speed", "Store", "Switch", "Use", "Widen",
}  # fmt: skip
PAGES = sorted((Path(__file__).parents[2] / "docs" / "reference" / "fixes").glob("*.md"))
INLINE = "inline"  # code in a line of prose
LABELS = ["Triggers when ", "What it does: ", "How to confirm: "]


def paragraphs(fix: str) -> list[str]:
    text = inspect.cleandoc(importlib.import_module(f"loaderbench.remedies.{fix}").__doc__ or "")
    return [part.replace("\n", " ") for part in text.split("\n\n")]


def texts_of(found: Recommendation) -> list[str]:
    own = [found.title, *found.costs, found.caveat, found.reason]
    comments = re.findall(r"#\s*(.*)", found.snippet or "")
    return [text for text in [*own, *comments] if text]


def told() -> list[Recommendation]:
    """What every fix says of its own cause, and what the sweep's say of theirs."""
    of_causes = [found for case in CAUSES.values() for found in advice(case)]
    starts: list[Config] = [TODAY, {**TODAY, "num_workers": 8}, {**TODAY, "batch_size": 32, "pin_memory": True}]
    factors = [{}, {("num_workers", 2): 2.0}, {("batch_size", 32): 2.0, ("pin_memory", True): 0.5}]
    kinds = product(starts, factors, (False, True))
    sweeps = [findings(AXES, start, factor, accelerator=gpu) for start, factor, gpu in kinds]
    sweeps += [short_of_room(kind, limit_bytes=64 << 20) for kind in ("shared_memory_full", "host_memory")]
    return [*of_causes, *(found for given in sweeps for found in answers(given).values())]


TOLD = told()


def test_every_title_says_what_to_do_in_one_short_line() -> None:
    assert {found.id for found in TOLD} >= {remedy.id for remedy in REMEDIES} - {"loader_is_innocent"}
    for found in TOLD:
        assert len(found.title) <= TITLE_LIMIT, found.title
        assert found.title.split()[0] in VERBS, found.title
        assert "{" not in found.title


@pytest.mark.parametrize("fix", ["main_process_loading", "more_workers", "fewer_workers", "workers_beyond_cores"])
def test_a_title_names_the_argument_and_its_value(fix: str) -> None:
    found = next(answer for answer in advice(CAUSES[fix]) if answer.id == fix)
    assert f"Set num_workers={found.change['num_workers']}" in found.title


def test_a_title_without_a_trial_names_what_its_code_does() -> None:
    of_a_folder = CAUSES["faster_decoder"]
    found, of_other_code = (
        next(answer for answer in advice(case) if answer.id == "faster_decoder")
        for case in (of_a_folder, replace(of_a_folder, options=None))
    )
    assert found.title == f"Decode JPEGs with {found.change['decoder']} instead of Pillow"
    assert of_other_code.title == "Decode JPEGs with torchvision, if you use Pillow now"


@pytest.mark.parametrize(
    ("fix", "trait", "title"),
    [
        ("faster_decoder", "pillow", "Decode JPEGs with torchvision instead of Pillow"),
        ("transforms_v2_uint8", "transforms_v1", "Use transforms v2 on uint8; convert to float last"),
        ("uint8_transport", "float_samples", "Normalize on the GPU"),
    ],
)
def test_a_title_has_no_condition_that_was_seen_to_hold(fix: str, trait: str, title: str) -> None:
    of_users = replace(CAUSES[fix], options=None)
    titles = [
        next(answer.title for answer in advice(case) if answer.id == fix)
        for case in (of_users, replace(of_users, traits={trait: "as the user has it"}))
    ]
    assert ", if " in titles[0]
    assert titles[1] == title


@pytest.mark.parametrize(
    ("fix", "trait"),
    [
        ("transforms_v2_uint8", "transforms_v2"),
        ("uint8_transport", "uint8_samples"),
        ("uint8_transport", "no_images"),
        ("faster_decoder", "opencv"),
    ],
)
def test_what_a_dataset_was_seen_to_have_is_not_advised(fix: str, trait: str) -> None:
    of_users = replace(CAUSES[fix], options=None, traits={trait: "as the user has it"})
    assert fix not in {answer.id for answer in advice(of_users)}
    of_a_folder = replace(CAUSES[fix], traits={trait: "in one of its configurations"})
    assert fix in {answer.id for answer in advice(of_a_folder)}


@pytest.mark.parametrize(
    ("traits", "title"),
    [
        ({"float_samples": "float32"}, "Send uint8 batches; normalize in the loop"),
        ({}, "Send uint8 batches, if they are float32"),
    ],
)
def test_a_script_that_ran_without_a_gpu_is_to_send_smaller_batches(traits: dict[str, str], title: str) -> None:
    of_users = replace(diagnosis(CAUSES["uint8_transport"]), options=None, profile=True, traits=traits)
    assert title in {answer.title for answer in of_diagnosis(of_users)}
    on_a_gpu = of_diagnosis(replace(of_users, accelerator=True))
    assert "Normalize on the GPU" in next(answer.title for answer in on_a_gpu if answer.id == "uint8_transport")


def test_a_script_that_ran_without_a_gpu_is_not_told_to_use_one() -> None:
    """Unless it sends float32 from its workers, which costs memory bandwidth without one, too."""

    def is_advised(cause: str, **found: bool) -> bool:
        of_users = replace(diagnosis(CAUSES[cause]), options=None, **found)  # type: ignore[arg-type]
        return "uint8_transport" in {answer.id for answer in of_diagnosis(of_users)}

    for of_a_script in ("profile", "step_on_cpu"):
        assert not is_advised("transforms_v2_uint8", **{of_a_script: True})
        assert is_advised("transforms_v2_uint8", **{of_a_script: True}, accelerator=True)
        assert is_advised("uint8_transport", **{of_a_script: True})
    assert is_advised("transforms_v2_uint8")


@pytest.mark.parametrize("fix", [remedy.id for remedy in REMEDIES])
def test_a_docstring_says_what_is_wrong_when_it_triggers_what_it_does_and_how_to_confirm(fix: str) -> None:
    first, *rest = paragraphs(fix)
    assert first.endswith(".")
    assert [part for part in rest if not part.startswith("Costs: ")] == [
        next(part for part in rest if part.startswith(label)) for label in LABELS
    ]


def test_sentences_of_what_a_fix_says_are_short_and_plain() -> None:
    for text in {text for found in TOLD for text in texts_of(found)}:
        assert wrong_words(text, in_report=True) == [], text
        assert long_sentences(text) == [], text


def test_the_comments_in_the_code_of_a_page_are_short_and_plain() -> None:
    blocks = [
        code for page in PAGES for language, code in code_of_markdown(page.read_text("utf-8")) if language != INLINE
    ]
    comments = [comment for code in blocks for comment in re.findall(r"#\s*(.*)", code)]
    assert len(comments) > 10
    for comment in comments:
        assert wrong_words(comment, in_report=True) == [], comment
        assert long_sentences(comment) == [], comment


@pytest.mark.parametrize(
    ("changes", "title"),
    [
        (["num_workers=2", "normalize on the GPU"], "Apply num_workers=2 + normalize on the GPU"),
        (["num_workers=2"], "Apply num_workers=2"),
        (["a" * 45, "b" * 45, "c"], f"Apply {'a' * 45} + 2 more"),
        (["a" * 99, "b"], "Apply 2 changes"),
    ],
)
def test_a_combination_names_as_many_changes_as_fit(changes: list[str], title: str) -> None:
    assert applied(changes) == title


def test_a_combination_has_shorter_names_where_only_those_fit() -> None:
    changes = ["cache decoded images in shared memory", "normalize on the GPU", "pre-resize images to 256 px"]
    shorter = ["image_cache=shared_memory", "normalize=device", "presize=256"]
    assert applied(changes[:2], shorter[:2]) == f"Apply {changes[0]} + {changes[1]}"
    assert applied(changes, shorter) == "Apply image_cache=shared_memory + normalize=device + presize=256"
    assert applied(changes, ["a" * 99]) == f"Apply {changes[0]} + {changes[1]} + 1 more"


@pytest.mark.parametrize(
    ("title", "part"),
    [
        ("Set num_workers=8 (more than CPUs)", "num_workers=8"),
        ("Normalize on the GPU", "normalize on the GPU"),
        ("Pre-resize images to 256 px (short side)", "pre-resize images to 256 px"),
    ],
)
def test_a_title_shortens_to_a_part_of_a_combination(title: str, part: str) -> None:
    assert phrase(title) == part


def test_a_title_names_the_value_that_was_tried() -> None:
    tried = {"num_workers": 8}
    assert (
        retitled("Set num_workers=2 (more than CPUs)", {"num_workers": 2}, tried)
        == "Set num_workers=8 (more than CPUs)"
    )
    assert retitled("Set in_order=False", {"in_order": False}, tried) == "Set in_order=False"
    assert retitled("Set decoder=a", {}, {"decoder": r"\1"}) == r"Set decoder=\1"


def test_a_title_names_what_was_tried_whatever_this_machine_would_advise() -> None:
    title = "Decode JPEGs with torchvision instead of Pillow"
    tried = retitled(title, {"decoder": "torchvision"}, {"decoder": "simplejpeg"})
    assert tried == "Decode JPEGs with simplejpeg instead of Pillow"
