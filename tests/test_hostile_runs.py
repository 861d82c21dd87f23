"""Whatever a run.json holds, reading it gives a run or one line; nothing of it is executed."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loaderbench.conclusion import conclude
from loaderbench.errors import RunFileError
from loaderbench.records import Readings
from loaderbench.report.document import build_document
from loaderbench.store import read_run, readable_trials

EXAMPLE = Path(__file__).parents[1] / "reports" / "examples" / "two-cores" / "run.json"
CASES = [range(40), pytest.param(range(40, 150), marks=pytest.mark.slow)]
EVIL: list[Any] = [
    None,
    -1,
    1e308,
    0,
    True,
    "",
    "x" * 100_000,
    [],
    {},
    [[[]]],
    {"__class__": "os.system"},
    "\udcff",
    [None],
]


def small() -> dict[str, Any]:
    """The committed example with a few of its trials."""
    run: dict[str, Any] = json.loads(EXAMPLE.read_text())
    run["trials"] = run["trials"][:2]
    run["verification"] = None
    run["ladder"] = None
    return run


def nodes(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from nodes(child, (*path, key))


def spoilt(seed: int) -> str:
    """The example with one to three things replaced, taken away, or its text cut."""
    dice = random.Random(seed)
    run: Any = copy.deepcopy(SMALL)
    for _ in range(dice.randint(1, 3)):
        *above, last = dice.choice([path for path in nodes(run) if path])
        place = run
        for key in above:
            place = place[key]
        if dice.random() < 0.3:
            del place[last]
        else:
            place[last] = copy.deepcopy(dice.choice(EVIL))
    text = json.dumps(run)
    return text[: dice.randrange(len(text))] if dice.random() < 0.2 else text


SMALL = small()


def refusal(folder: Path, text: str) -> str | None:
    """What is said of a run; `None` where it can be read."""
    (folder / "run.json").write_text(text)
    try:
        read_run(folder)
    except RunFileError as refused:
        return str(refused)
    return None


@pytest.mark.parametrize("seeds", CASES, ids=["some", "many"])
def test_most_of_what_is_spoilt_is_refused_in_one_line_and_the_rest_is_a_run(tmp_path: Path, seeds: range) -> None:
    said = [line for seed in seeds if (line := refusal(tmp_path, spoilt(seed))) is not None]

    assert len(seeds) / 2 < len(said) < len(seeds)
    assert not [line for line in said if "\n" in line or len(line) > 1_000]


@pytest.mark.parametrize("seeds", CASES, ids=["some", "many"])
def test_what_can_be_read_of_them_is_drawn_and_concluded_again(tmp_path: Path, seeds: range) -> None:
    drawn = 0
    for seed in seeds:
        if refusal(tmp_path, spoilt(1_000 + seed)) is None:
            run = read_run(tmp_path)
            build_document(run, Readings())
            conclude(run)
            drawn += 1
    assert drawn > len(seeds) / 20


@pytest.mark.parametrize(
    ("number", "said"), [("1e308", "out of range"), ("1e-320", "out of range"), ("9" * 5000, "limit")]
)
def test_numbers_that_no_run_can_hold_are_refused(tmp_path: Path, number: str, said: str) -> None:
    assert said in str(refusal(tmp_path, f'{{"schema_version": {number}}}'))


def test_a_run_of_a_later_version_says_who_can_read_it(tmp_path: Path) -> None:
    text = str(refusal(tmp_path, json.dumps({**SMALL, "schema_version": 99})))
    assert text.endswith("schema_version is 99; this version reads 1 and 2; upgrade loaderbench to read it")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "\x00" * 100, "[" * 100_000, '{"a": 1e999}', "nan", '"' + "x" * 10_000]
)
def test_a_line_of_trials_that_is_none_costs_that_line(tmp_path: Path, text: str) -> None:
    good = json.dumps(SMALL["trials"][0])
    (tmp_path / "trials.jsonl").write_text(f"{good}\n{text}\n{good}\n")

    assert len(readable_trials(tmp_path)[0]) == 2
