"""Phrases that no text may use, and the field's words for each. `prose.CALQUES` covers single words."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

RETIRED: Mapping[str, str] = MappingProxyType(
    {
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
        "is the kernel's, at": "in the kernel (N page faults/sample)",
        "whose fault that is": "Cause unknown",
        "of the looks": "blocked on a lock in N of checks",
        "of what ... takes": "transform costs 67% as much as decode",
        "what that and the cores explain": "unexplained slowdown 1.04\N{MULTIPLICATION SIGN}",
        "the fastest looked": "fastest estimate:",
        "the noise does not exclude": "difference not significant",
        "the machine's speed changed by a factor of": "reference decode time varied by",
        "ran dry": "ran out of data",
        "measured as if it were two": "A/A test",
        "where a step goes": "Step time breakdown",
        "takes its batches without end": "no epoch ended in the trial",
        "dataset itself": "other `__getitem__` code",
        "so much would be won": "maximum gain from fixing outliers",
        "quantiles are right within": "Percentiles accurate to ±5%",
        "those that nothing beats": "Pareto frontier",
        "headspace": "Headroom",
        "what speaks for another cause": "Evidence against",
        "what was there": "unmodified config",
        "it ended there": "Stopped early",
        "change ... together": "Apply ... together",
        "all that was kept": "All accepted fixes vs baseline",
        "copies whose shorter side has": "Pre-resize images to 256 px (short side)",
        "draw the crop before decoding": "Choose the crop first; decode at reduced scale",
        "takes on the normalising": "Normalization moves to the GPU",
        "over so few samples each epoch also takes": "Excludes per-epoch worker startup:",
        "in so many processes": "Repeats per configuration",
        "stop after so long": "Time limit",
        "leave --out away": "cannot be combined with --out",
        "say so when it holds": "Warn when true",
        "JPEGs that cost what photographs cost": "realistic synthetic JPEGs",
        "fault of its own": "internal error",
        "is let go after": "stops after five batches",
        "whoever read stdout": "broken pipe",
        "asks for code": "Effort: code change",
        "own cost": "overhead",
        "nothing beats": "Pareto frontier",
        "speaks for": "Evidence against",
        "the same as a table": "Data table",
        "allotted": "available CPUs",
        "ladder": "isolation runs",
    }
)
"""A phrase that users met, to what they read instead. Three dots are some words of one sentence."""
