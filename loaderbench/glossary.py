"""The product's terms, one per concept. `docs/glossary_page.py` generates `docs/reference/glossary.md` from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Used = Literal["any", "sweep", "profile", "docs"]
"""The kind of run whose report uses a term in this sense; `docs`: only the docs use it."""


@dataclass(frozen=True)
class Term:
    """A term with its single meaning. `not_called`: other words for the same thing, such as those of `run.json`."""

    name: str
    meaning: str
    not_called: tuple[str, ...] = ()
    used: Used = "any"


GLOSSARY: tuple[Term, ...] = (
    Term("A/A test", "Two identical configurations compared: any difference is noise.", used="sweep"),
    Term(
        "available CPUs",
        "CPUs that the process may use: its affinity mask and its CPU quota.",
        ("allotted CPUs",),
        used="docs",
    ),
    Term("axis", "A parameter that the sweep varies, with its values, such as `num_workers`.", used="docs"),
    Term("baseline", "The starting configuration of the sweep.", used="sweep"),
    Term("best configuration", "The cheapest of the configurations that are tied with the fastest.", used="docs"),
    Term("bound", "What sets the pace of training: input, compute or transfer.", used="docs"),
    Term("ceiling", "Samples/s with free loading: cached batches replayed, or the emulated target.", used="sweep"),
    Term("ceiling", "Samples/s of your loop without any data wait.", used="profile"),
    Term("confidence", "How far to trust a verdict: high, medium or low, with the reasons.", used="docs"),
    Term("configuration", "One point of the sweep: a value for every axis.", ("config",), used="sweep"),
    Term("consumer", "What takes the batches: a real training step, an emulated GPU, or nothing.", used="sweep"),
    Term("contention", "Extra time per sample because workers share caches, memory, CPUs or a lock.", used="sweep"),
    Term("CPU time", "Time a thread spends on a CPU. Waiting for storage or a lock is not CPU time.", used="docs"),
    Term(
        "data wait", "Time blocked in next() with no work left (a data stall), as % of step time.", ("data wait share",)
    ),
    Term(
        "emulated GPU",
        "A substitute that takes batches at the target rate. It uses CPU time only if the suite says so.",
        ("emulated accelerator",),
        used="docs",
    ),
    Term("epoch boundary", "Time from the last request of an epoch to the first batch of the next.", used="profile"),
    Term("final", "Further rounds of the configurations that the sweep did not exclude as best.", used="docs"),
    Term(
        "fix",
        "A change of the loader, the code or the data, with its gain.",
        ("remedy", "card", "recommendation"),
        used="docs",
    ),
    Term(
        "free-stage trial",
        "A trial in which one stage replays kept results, which costs almost nothing. Its gain is that of the stage.",
        ("freed",),
        used="docs",
    ),
    Term("gate", "A pass/fail threshold for a run, alone or vs a reference run. Set it with `--fail-if`.", used="docs"),
    Term(
        "head-of-line blocking",
        "Finished batches wait for a slow one, because batches are returned in order.",
        ("order",),
    ),
    Term(
        "headroom",
        "Share of the time per batch that free loading would save: (measured \N{MINUS SIGN} ceiling) / measured.",
        ("headspace",),
    ),
    Term("host-to-device copy", "Copying a batch from host memory to the GPU.", ("transfer",)),
    Term("input-bound", "Training waits for data: 5% of step time or more.", used="docs"),
    Term("interference", "Time of loader and consumer together, minus the slower one alone.", used="sweep"),
    Term(
        "isolation run",
        "A trial with parts of the pipeline removed, such as the loader alone.",
        ("rung", "ladder"),
        used="sweep",
    ),
    Term(
        "limit",
        "What keeps a stage from going faster: CPUs, workers, storage, a lock, memory or another resource.",
        used="docs",
    ),
    Term("main process", "The process that runs the training loop and takes the batches.", used="docs"),
    Term(
        "not measured",
        "Of a fix: it is known to help against this cause, and this run did not try it.",
        ("heuristic",),
        used="docs",
    ),
    Term("page-fault overhead", "CPU time the kernel spends on mapping new memory.", ("memory",)),
    Term("pair", "Two trials of one round that are compared with each other. Pairs are interleaved.", used="docs"),
    Term(
        "Pareto frontier",
        "Configurations with more samples/s than all that use the same resource or less.",
        used="sweep",
    ),
    Term("Passed", "A fix that the run already uses or does not need.", ("already fine",), used="docs"),
    Term("PSS", "Memory of all processes, in which a shared page counts once.", used="docs"),
    Term("rank", "One process of a distributed training.", used="docs"),
    Term(
        "reference run",
        "An earlier run to compare with: `--baseline RUN`. The baseline is a configuration.",
        used="docs",
    ),
    Term("report", "`report.html`, the HTML file of a run.", ("page",), used="docs"),
    Term("round", "One pass that measures each configuration once, in shuffled order.", used="sweep"),
    Term("RSS", "Resident set size: memory of one process, which counts shared pages in full.", used="docs"),
    Term("run", "One execution of a suite, or one profile. `run.json` holds all of it.", used="docs"),
    Term("sample", "One item of the dataset, such as an image with its label.", used="docs"),
    Term("stage", "A part of the pipeline that a verdict can name, such as read, decode, transform or collate."),
    Term("startup", "Time before the first batch of an epoch, such as the start of workers.", used="docs"),
    Term("steady state", "The measured batches, after the warm-up. The first batch is timed separately."),
    Term("step", "From one call of next() to the next: the data wait plus the work on the batch."),
    Term("straggler", "A sample or batch that takes far longer than the median.", used="docs"),
    Term("suite", "One YAML file: dataset, loader, axes, consumer and measuring rules.", used="docs"),
    Term("swapped out", "Moved from memory to disk by the kernel, and read back when it is needed.", used="docs"),
    Term(
        "target",
        "Samples/s that training would take if loading were free. `consumer.demand` sets it.",
        ("demand",),
        used="sweep",
    ),
    Term("threshold", "The value that a gate compares with.", used="docs"),
    Term("throughput limit", "Samples/s that one resource allows: workers, CPUs or the main process.", used="docs"),
    Term(
        "tie",
        "A configuration with no significant difference from the fastest: within 5%, or not separated by the final.",
        used="sweep",
    ),
    Term("time slice", "A short time in which one trial of a round runs while the others are stopped.", used="docs"),
    Term("time to first batch", "From iter(loader) to the first batch, including worker startup."),
    Term("trial", "One configuration measured once, in its own process.", used="sweep"),
    Term("verdict", "What bounds the run, at which stage, and what limits that stage."),
    Term(
        "warm / cold page cache",
        "A trial finds its files cached in memory, or reads them from storage.",
        ("evicted files",),
        used="sweep",
    ),
    Term("warm-up", "Batches before the loader reaches a steady rate. They are counted separately.", used="docs"),
    Term("worker-to-main IPC", "Passing a batch from a worker process to the main process.", ("transport",)),
)
"""In alphabetical order."""


def of_report(kind: Literal["sweep", "profile"]) -> tuple[Term, ...]:
    """Terms that the report of this kind of run uses."""
    return tuple(term for term in GLOSSARY if term.used in ("any", kind))
