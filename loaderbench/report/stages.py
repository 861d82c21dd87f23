"""The stages of a sample: how they are called, in what order they stand, and which parts belong to which."""

from __future__ import annotations

from collections.abc import Iterable

from loaderbench.report import words
from loaderbench.report.parts import Text

_FIRST = ("read", "decode", "transform")
_LAST = ("sample", "collate", "transport")
_DATASET = Text("dataset itself", "time inside the dataset that belongs to no other stage")


def name(stage: str) -> Text:
    """How a stage is called; `sample` is what the others leave of it, and users name their own."""
    return _DATASET if stage == "sample" else words.outside(stage, 40)


def ordered(found: Iterable[str]) -> list[str]:
    """In the order in which a sample passes through them, with those of the user's own in between."""
    return sorted(found, key=_place)


def _place(stage: str) -> int:
    if stage in _FIRST:
        return _FIRST.index(stage)
    return len(_FIRST) + 1 + _LAST.index(stage) if stage in _LAST else len(_FIRST)


def parts_of(stage: str, found: Iterable[str]) -> list[str]:
    """The named parts of a stage: `transform/RandomResizedCrop` is one of `transform`."""
    return [part for part in found if part.partition("/")[0] == stage]


def part_name(part: str) -> Text:
    """A part without its stage, which stands above it."""
    return words.outside(part.partition("/")[2] or part, 40)
