"""Repeat an experiment, report each repeat on stderr, and optionally save all of them as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

Found = TypeVar("Found")


def repeated(names: Iterable[str], repeats: int, measure: Callable[[str, int], Found]) -> dict[str, list[Found]]:
    """Return the results of `measure(name, number)` for each experiment; numbers count from 0."""
    everything: dict[str, list[Found]] = {}
    for name in names:
        everything[name] = []
        for number in range(repeats):
            everything[name].append(measure(name, number))
            print(f"{name} {number + 1}: {everything[name][-1]}", file=sys.stderr, flush=True)
    return everything


def write_json(file: Path | None, everything: Mapping[str, Sequence[Any]]) -> None:
    """Write the dataclasses of each experiment; nothing without a file."""
    if file is not None:
        file.write_text(
            json.dumps({name: [asdict(one) for one in found] for name, found in everything.items()}, indent=1)
        )
