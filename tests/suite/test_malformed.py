"""Each of many mistakes is one line that names the line it stands in: every key of a suite, spoilt in every way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from loaderbench.errors import SuiteError
from loaderbench.suite import load_suite

GOOD = """\
name: images
dataset:
  kind: image_folder
  root: photos
  generate:
    images: 512
    like: imagenet
    seed: 0
  sample: 2000
  decoder: pillow
  transform: imagenet_train
  normalize: worker
loader:
  shuffle: true
  drop_last: true
sweep:
  batch_size: [32, 128]
  num_workers: [0, 2]
  pin_memory: [false]
consumer:
  kind: emulated
  demand: 1000
measure:
  rounds: 3
  seconds: 1.5
  cache: warm
  strategy: grid
  budget: 10m
  timeout_s: 60
  verify: true
  seed: 1
"""
LINES = GOOD.splitlines()
KEY = re.compile(r"(?P<indent> *)(?P<key>\w+):(?P<value>.*)")
MAPPINGS = {"dataset", "generate", "loader", "sweep", "consumer", "measure"}


def mistakes() -> Iterator[tuple[str, int, list[str]]]:
    """A name, the number of the line that is wrong, and the lines of the suite."""
    for place, line in enumerate(LINES):
        found = KEY.fullmatch(line)
        assert found
        indent, key, value = found["indent"], found["key"], found["value"]

        def spoilt(*changed: str, place: int = place) -> list[str]:
            return [*LINES[:place], *changed, *LINES[place + 1 :]]

        if not (indent and LINES[place - 1].strip() in ("sweep:", "loader:")) and key not in (
            "batch_size", "num_workers", "pin_memory", "shuffle", "drop_last",
        ):  # fmt: skip
            yield f"{key} misspelt", place + 1, spoilt(f"{indent}{key}x:{value}")
        twice = (line, f"{indent}{key}: 1") if key not in MAPPINGS else (f"{indent}{key}: 1", line)
        yield f"{key} twice", place + 2, spoilt(*twice)
        if key not in MAPPINGS:
            yield f"{key} is a mapping", place + 1, spoilt(f"{indent}{key}: {{a: {{b: 1}}}}")
            yield f"{key} is a list of lists", place + 1, spoilt(f"{indent}{key}: [[1], [2]]")
            yield f"{key} has an open quote", place + 1, spoilt(f'{indent}{key}: "open')
            yield f"{key} has an open list", place + 1, spoilt(f"{indent}{key}: [1, 2")
            yield f"{key} is an alias of nothing", place + 1, spoilt(f"{indent}{key}: *nothing")
            yield f"{key} asks for a variable that is not set", place + 1, spoilt(f"{indent}{key}: ${{LB_NOT_SET}}")
            yield f"{key} is not finite", place + 1, spoilt(f"{indent}{key}: .inf")
            yield f"{key} is a Python object", place + 1, spoilt(f"{indent}{key}: !!python/object:os.system x")
        else:
            yield f"{key} is a number", place + 1, [*LINES[:place], f"{indent}{key}: 3", *after(place)]
            yield f"{key} is a list", place + 1, [*LINES[:place], f"{indent}{key}: [1]", *after(place)]


def after(place: int) -> list[str]:
    """The lines behind a mapping."""
    indent = len(LINES[place]) - len(LINES[place].lstrip())
    rest = LINES[place + 1 :]
    inside = next((i for i, line in enumerate(rest) if len(line) - len(line.lstrip()) <= indent), len(rest))
    return rest[inside:]


CASES = list(mistakes())


def test_there_are_at_least_two_hundred() -> None:
    assert len(CASES) >= 200
    assert load_text(GOOD) is None


def load_text(text: str, folder: Path | None = None) -> str | None:
    """What is said of a suite; `None` where it is right."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as place:
        file = (folder or Path(place)) / "s.yaml"
        file.write_text(text)
        try:
            load_suite(file)
        except SuiteError as error:
            return str(error).removeprefix(f"{file}:")
    return None


@pytest.mark.parametrize(("name", "number", "lines"), CASES, ids=[name for name, *_ in CASES])
def test_a_mistake_is_one_line_with_the_number_of_its_line(name: str, number: int, lines: list[str]) -> None:
    said = load_text("\n".join(lines) + "\n")

    assert said is not None, name
    assert "\n" not in said
    found = re.match(r"(\d+):(\d+): ", said)
    assert found, said
    # what is left open is only missed later, at the end of the text at the latest
    open_ended = "open" in name
    assert int(found[1]) == number or (open_ended and number <= int(found[1]) <= len(lines) + 1), said


@pytest.mark.parametrize("number", ["3.4e38", "-1e30", "1e-31"])
def test_a_number_that_no_saved_run_may_hold_is_refused(number: str, tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(f"dataset: {{kind: target, target: 'a:b', args: {{most: {number}}}}}\n")
    with pytest.raises(SuiteError, match=r"expected a number between 1e-30 and 1e[+]30 in magnitude"):
        load_suite(file)
