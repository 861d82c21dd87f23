"""Code to paste for a stream has no argument that its `DataLoader` rejects."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from loaderbench.remedies.streams import loader_arguments


@pytest.mark.parametrize(
    ("trait", "kept"), [("stream", {"drop_last": True}), ("pillow", {"shuffle": True, "drop_last": True})]
)
def test_a_stream_is_not_shuffled(trait: str, kept: dict[str, bool]) -> None:
    trials = [SimpleNamespace(dataset_traits={}), SimpleNamespace(dataset_traits={trait: "x"})]
    measured: Any = SimpleNamespace(sweep=trials, loader={"shuffle": True, "drop_last": True})
    assert loader_arguments(measured) == kept
