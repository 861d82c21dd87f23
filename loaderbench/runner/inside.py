"""What a trial sees inside its own loader: stages of samples, and what the workers were doing."""

from __future__ import annotations

from collections.abc import Iterator
from multiprocessing import active_children
from typing import Any

from loaderbench.monitors import WorkerWatch
from loaderbench.recorder import inside_fields
from loaderbench.tracing.cost import tracing_s_per_sample
from loaderbench.tracing.loader import LoaderTrace, is_loader
from loaderbench.tracing.reading import Mark

NO_WORKERS = "no worker processes: the batches are made in the consumer's own process"


class Inside:
    """Iterates over a loader, traced where it can be; read at the beginning and at the end of the steady state."""

    def __init__(self, batches: Any, root: str | None = None) -> None:
        self._batches, self._root = batches, root
        self._trace: LoaderTrace | None = None
        self._mark: Mark | None = None
        self._watch = WorkerWatch()
        self._why_not = f"the batches come from a {type(batches).__name__}, not a DataLoader"
        if is_loader(batches):
            self._trace = LoaderTrace(batches)

    def __iter__(self) -> Iterator[Any]:
        return self._trace.batches() if self._trace else iter(self._batches)

    def begin(self) -> None:
        """Begin to count."""
        self._watch.read(_workers())
        self._mark = self._trace.mark() if self._trace else None

    def fields(self) -> dict[str, Any]:
        """Fields of a trial, with `not_measured` among them; call it while the workers live."""
        self._watch.read(_workers())
        traced = self._trace.read(self._mark) if self._trace else None
        if self._trace and traced and not traced.traced:  # all was made before the steady state began
            traced = self._trace.read()
        self._watch.read_memory(_workers())
        found = inside_fields(traced, getattr(self._batches, "dataset", None), self._why_not, self._root)
        found["tracing_s_per_sample"] = tracing_s_per_sample(traced) if traced else None
        found["workers"] = self._watch.states()
        found["not_measured"]["workers"] = self._watch.why_not() if _workers() else NO_WORKERS
        found["not_measured"]["tracing_s_per_sample"] = self._why_not
        return found


def _workers() -> list[int]:
    return [child.pid for child in active_children() if child.pid]
