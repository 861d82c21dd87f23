"""The glossary: one meaning for each term that users read, in the report and in the docs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from loaderbench.records import Kind


@dataclass(frozen=True)
class Term:
    """A term with its meaning; `kind` is the only kind of run that uses it, or uses it in this sense."""

    word: str
    meaning: str
    kind: Kind | Literal["any"] = "any"


GLOSSARY = (
    Term("configuration", "One point of the sweep: a value for every axis.", "sweep"),
    Term("baseline", "The starting configuration of the sweep.", "sweep"),
    Term("trial", "One configuration measured once, in its own process.", "sweep"),
    Term("round", "Each configuration measured once, in shuffled order.", "sweep"),
    Term("steady state", "The measured batches, after the warm-up. The first batch is timed separately."),
    Term("step", "From one call of next() to the next: the data wait plus the work on the batch."),
    Term("data wait", "Time blocked in next() with no work left (a data stall), as % of step time."),
    Term("time to first batch", "From iter(loader) to the first batch, including worker startup."),
    Term("epoch boundary", "From asking for more at the end of an epoch to the first batch of the next.", "profile"),
    Term("stage", "A part of the pipeline: read, decode, transform, collate, worker-to-main IPC, host-to-device copy."),
    Term("worker-to-main IPC", "Passing a batch from a worker process to the main process."),
    Term("host-to-device copy", "Copying a batch from host memory to the GPU."),
    Term("consumer", "What takes the batches: a real training step, an emulated GPU, or nothing.", "sweep"),
    Term("demand", "Samples/s the consumer would take if loading were free.", "sweep"),
    Term("ceiling", "Samples/s with free loading: cached batches replayed, or the emulated demand.", "sweep"),
    Term("ceiling", "Samples/s of your loop without any data wait.", "profile"),
    Term("headroom", "Share of the time per batch that free loading would save: (measured \u2212 ceiling) / measured."),
    Term("isolation run", "A trial with parts of the pipeline removed, such as the loader alone.", "sweep"),
    Term("warm / cold page cache", "A trial finds its files cached in memory, or reads them from storage.", "sweep"),
    Term("interference", "Time of loader and consumer together, minus the slower one alone.", "sweep"),
    Term("contention", "Extra time per sample because workers share caches, memory, CPUs or a lock.", "sweep"),
    Term("head-of-line blocking", "Finished batches wait for a slow one, because batches are returned in order."),
    Term("page-fault overhead", "CPU time the kernel spends on mapping new memory."),
    Term("A/A test", "Two identical configurations compared: any difference is noise.", "sweep"),
    Term("tie", "A configuration not significantly slower than the fastest. The cheapest of them is best.", "sweep"),
    Term("Pareto frontier", "Configurations with more samples/s than all that use the same resource or less.", "sweep"),
    Term("verdict", "What bounds the run, at which stage, and what limits that stage."),
)


def glossary(kind: Kind) -> Sequence[Term]:
    """The terms of a kind of run."""
    return tuple(term for term in GLOSSARY if term.kind in ("any", kind))
