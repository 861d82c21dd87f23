"""The product's words, one for each thing, and the phrases that they replaced.

`docs/reference/glossary.md` is made from here by `docs/glossary_page.py`; `tests/test_words.py` keeps `RETIRED` out of
the docs and out of all texts that the product prints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Term:
    """A word with its one meaning. `not_called`: other words for the same thing, which users do not read here."""

    name: str
    meaning: str
    not_called: tuple[str, ...] = ()


GLOSSARY: tuple[Term, ...] = (
    Term("A/A test", "One configuration measured twice per round, as if it were two. The difference is noise."),
    Term("available CPUs", "CPUs that the process may use: its affinity mask and its CPU quota.", ("allotted CPUs",)),
    Term("axis", "One swept parameter with its values, such as `num_workers` or `decoder`."),
    Term("baseline", "The starting configuration that gains are compared with. An earlier run is a reference run."),
    Term("best configuration", "The cheapest of the configurations that are tied with the fastest."),
    Term("bound", "What sets the pace of training: input, compute or transfer."),
    Term("ceiling", "Samples/s with free data loading: batches replayed from memory, or the demand."),
    Term("cold page cache", "None of the files is in memory: reads go to storage.", ("evicted",)),
    Term("configuration", "One point of the sweep: a value for every axis."),
    Term("consumer", "What takes the batches: a training step, an emulated GPU, or nothing."),
    Term("contention", "The extra cost of a sample when workers share caches, memory, CPUs or a lock."),
    Term("CPU time", "Time a thread spends on a CPU. Waiting for storage or a lock is not CPU time."),
    Term("data wait", "Time blocked in `next()` with nothing left to compute: a data stall."),
    Term(
        "data wait, % of step time",
        "Data wait divided by the wall time of the steady state. In `run.json`: `data_wait_share`.",
        ("data wait share",),
    ),
    Term("demand", "Samples/s that the GPU could take if data loading were free."),
    Term("emulated GPU", "A stand-in that takes `demand` samples/s without using CPU time.", ("emulated accelerator",)),
    Term("fix", "A change of the loader, the code or the data, with its gain.", ("remedy", "card", "recommendation")),
    Term("gate", "A limit for a run, by itself or compared with a reference run. Set it with `--fail-if`."),
    Term("head-of-line blocking", "Finished batches wait for a slow batch ahead of them. In `run.json`: `order`."),
    Term("headroom", "The share of step time that free data loading would save.", ("headspace",)),
    Term("host-to-device copy", "Copying a batch from host memory to the GPU.", ("transfer",)),
    Term("input-bound", "Training waits for data: 5% of step time or more."),
    Term("interference", "Extra time when loader and consumer run together, minus the slower one alone."),
    Term("isolation run", "A configuration measured without one of its parts.", ("rung", "ladder", "parts taken away")),
    Term("limit", "What keeps a stage from going faster: CPUs, workers, storage, a lock, memory or another resource."),
    Term("main process", "The process that runs the training loop and takes the batches."),
    Term("page-fault overhead", "The kernel zeroes memory pages again and again. In `run.json`: `memory`."),
    Term("Passed", "A fix that the run already uses or does not need.", ("already fine",)),
    Term("report", "`report.html`, the HTML file of a run.", ("page",)),
    Term("round", "Every configuration measured once, in shuffled order."),
    Term("run", "One execution of a suite, or one profile. `run.json` holds all of it."),
    Term("sample", "One item of the dataset, such as an image with its label."),
    Term("stage", "A part of loading: read, decode, transform, collate, IPC or copy."),
    Term("steady state", "The measured batches, after warm-up and without the first batch of an epoch."),
    Term("suite", "One YAML file: dataset, loader, axes, consumer and measuring rules."),
    Term("tie", "Two configurations within 5% whose difference is not significant."),
    Term("time slice", "A short time in which one trial of a round runs while the others are stopped."),
    Term("time to first batch", "From `iter(loader)` to the first batch, including worker startup."),
    Term("trial", "One configuration measured once, in its own process."),
    Term("verdict", "What explains the run: its bound, the stage, and the limit of that stage."),
    Term("warm page cache", "The files are in memory: reads do not reach storage."),
    Term("warm-up", "Batches before the loader reaches a steady rate. They are counted separately."),
    Term("worker-to-main IPC", "Sending a finished batch from a worker to the main process.", ("transport",)),
)
"""In alphabetical order."""


def term(name: str) -> Term:
    """The entry of a word. Raises `KeyError` for a word that has none."""
    return _BY_NAME[name]


_BY_NAME = {entry.name: entry for entry in GLOSSARY}

RETIRED: Mapping[str, str] = MappingProxyType(
    {
        "would let through": "Throughput limits, samples/s",
        "with parts taken away": "Isolation runs",
        "files in memory": "warm page cache",
        "files evicted": "cold page cache",
        "less files in memory": "Storage cost (cold \N{MINUS SIGN} warm)",
        "less the slower of": "minus the slower one alone",
        "none seen": "not significant",
        "the first batch of an epoch that starts": "Worker startup costs",
        "waiting for slow samples while others are ready": "Head-of-line blocking by slow samples",
        "the CPUs are full": "CPUs are saturated",
        "CPUs are full": "CPUs are saturated",
        "the one process that takes the batches": "the main process",
        "goes on in one thread at a time": "is serialized",
        "is the kernel's, at": "in the kernel (N page faults/sample)",
        "whose fault that is": "Cause unknown",
        "of the looks": "blocked on a lock in N of checks",
        "stood at a lock": "blocked on a lock in N of checks",
        "of what decode takes": "transform costs 67% as much as decode",
        "what that and the cores explain": "unexplained slowdown 1.04\N{MULTIPLICATION SIGN}",
        "cannot be told apart": "are tied",
        "the fastest looked": "fastest estimate:",
        "the dearest of them it leaves": "saves ... vs the costliest tie",
        "the noise does not exclude": "difference not significant",
        "the machine's speed changed by a factor of": "reference decode time varied by",
        "ran dry": "ran out of data",
        "measured as if it were two": "A/A test",
        "the consumer stood in next()": "time blocked in next()",
        "told of": "From trial ...",
        "where a step goes": "Step time breakdown",
        "takes its batches without end": "endless sampler; training step not split",
        "dataset itself": "other `__getitem__` time",
        "so much would be won": "maximum gain from fixing outliers",
        "quantiles are right within": "Percentiles accurate to ±5%",
        "those that nothing beats": "Pareto frontier",
        "headspace": "Headroom",
        "what speaks for another cause": "Evidence against",
        "what was there": "unmodified config",
        "it ended there": "Stopped early",
        "all that was kept": "All accepted fixes vs baseline",
        "copies whose shorter side has": "Pre-resize images to 256 px (short side)",
        "draw the crop before decoding": "Choose the crop first; decode at reduced scale",
        "takes on the normalising": "Normalization moves to the GPU",
        "over so few samples each epoch also takes": "Excludes per-epoch worker startup:",
        "so that pinning memory does nothing": "pin_memory has no effect",
        "in so many processes": "Repeats per configuration",
        "stop after so long": "Time limit",
        "go on with a run that did not end": "Resume an interrupted run",
        "leave --out away": "cannot be combined with --out",
        "say so when it holds": "Warn when true",
        "JPEGs that cost what photographs cost": "realistic synthetic JPEGs",
        "fault of its own": "internal error",
        "must be mended": "must be fixed",
        "stands twice": "duplicate key",
        "is let go after": "stops after five batches",
        "whoever read stdout": "broken pipe",
        "asks for code": "Effort: code change",
    }
)
"""A phrase that users met, to what they read instead: the table of the rules for the product's voice."""
