"""A step as a CUDA graph: recorded once a shape, fed by copies. The graph is played: it runs the step again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from loaderbench.consumers.training_step import MOST_GRAPHS, WARM_UP_STEPS, GraphedStep


class Graph:
    """Replays what ran while it was recorded, on the tensors that were used then."""

    recording: Graph | None = None

    def __init__(self) -> None:
        self.launches: list[Any] = []

    def replay(self) -> None:
        for launch in self.launches:
            launch()

    def pool(self) -> str:
        return "pool"


class Step:
    """A sum of all pixels that it was given; what is recorded does not run."""

    def __init__(self) -> None:
        self.sums: list[float] = []
        self.calls = 0

    def __call__(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        self.calls += 1

        def launch() -> None:
            self.sums.append(float(images.sum() + labels.sum()))

        graph = Graph.recording
        (graph.launches.append if graph else lambda run: run())(launch)


@pytest.fixture
def pools(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The memory pools that graphs were recorded into."""
    used: list[Any] = []

    @contextmanager
    def recorded(graph: Graph, pool: Any = None, *, capture_error_mode: str) -> Iterator[None]:
        assert capture_error_mode == "thread_local", "the pinning thread calls CUDA during a capture"
        used.append(pool)
        Graph.recording = graph
        yield
        Graph.recording = None

    @contextmanager
    def within(_stream: Any) -> Iterator[None]:
        yield

    stream = SimpleNamespace(wait_stream=lambda _other: None)
    for name, replaced in {
        "CUDAGraph": Graph, "graph": recorded, "stream": within,
        "Stream": lambda: stream, "current_stream": lambda: stream,
    }.items():  # fmt: skip
        monkeypatch.setattr(torch.cuda, name, replaced)
    return used


def batch(value: float, count: int = 2) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.full((count, 3, 2, 2), value), torch.zeros(count, dtype=torch.int64)


def test_each_batch_is_trained_on_once_by_one_recorded_step(pools: list[Any]) -> None:
    step = Step()
    graphed = GraphedStep(step)
    for value in (1.0, 2.0, 3.0):
        graphed(*batch(value))
    assert step.calls == WARM_UP_STEPS + 1, "then the graph alone runs"
    assert step.sums[WARM_UP_STEPS:] == [24.0, 48.0, 72.0], "the pixels of each batch, not those that were recorded"
    assert pools == [None]


def test_a_last_batch_of_another_shape_has_a_graph_of_its_own_in_the_same_pool(pools: list[Any]) -> None:
    step = Step()
    graphed = GraphedStep(step)
    for count in (2, 2, 1, 2, 1):
        graphed(*batch(1.0, count))
    assert step.calls == 2 * (WARM_UP_STEPS + 1)
    assert step.sums[-2:] == [24.0, 12.0]
    assert pools == [None, "pool"]


def test_beyond_a_few_shapes_batches_are_trained_on_without_a_graph(pools: list[Any]) -> None:
    step = Step()
    graphed = GraphedStep(step)
    for count in range(1, MOST_GRAPHS + 3):
        graphed(*batch(1.0, count))
    assert len(pools) == MOST_GRAPHS
    assert step.sums[-1] == 12.0 * (MOST_GRAPHS + 2)


def test_a_batch_that_is_taken_again_is_not_changed(pools: list[Any]) -> None:
    graphed, (images, labels) = GraphedStep(Step()), batch(1.0)
    graphed(images, labels)
    graphed(*batch(9.0))
    assert float(images.sum()) == 24.0
