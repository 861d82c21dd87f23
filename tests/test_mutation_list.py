"""The list of changes without effect is about code that is there."""

from __future__ import annotations

from pathlib import Path

from ruamel.yaml import YAML

ROOT = Path(__file__).parents[1]


def without_space(text: str) -> str:
    return "".join(text.split())


def test_every_change_that_is_listed_can_still_be_made() -> None:
    listed = YAML(typ="safe").load((ROOT / "benchmarks" / "mutation_equivalents.yaml").read_text())
    gone = [
        f"{one['file']}: {one['was']}"
        for one in listed
        if without_space(one["was"]).rstrip(",") not in without_space((ROOT / "loaderbench" / one["file"]).read_text())
    ]
    assert gone == []
