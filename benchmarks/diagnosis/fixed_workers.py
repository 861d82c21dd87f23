"""Suites with one worker count, drawn at random. Trials next to the free stages have others, which decide the limit.

Kinds of work, their cost and the counts come from one seed. Where threads outnumber the CPUs, and one for each CPU
would be as fast, both words for it are right.
"""

from __future__ import annotations

from benchmarks.diagnosis.draws import Draws
from benchmarks.diagnosis.scenario import Scenario, because_of
from benchmarks.diagnosis.sweeps import diagnosed_with_trials

_DRAW = Draws(20261127)
LIMITS = {0: "workers", 1: "workers", 2: "cpu", 3: "cpu oversubscription", 6: "oversubscription cpu"}
"""By the workers that compute on two CPUs."""


def _computing(number: int) -> Scenario:
    kind = _DRAW.choice(["Python", "Hashing", "Zipping", "Fourier", "Lookup"])
    arguments = {"of": "opaque", "kind": kind, "ms": _DRAW.ms(1, 6), "workers": _DRAW.choice([*LIMITS])}
    why = "{kind}, {ms} ms a sample, {workers} workers, and no other count in the sweep.".format(**arguments)
    words = because_of("sample", LIMITS[arguments["workers"]])
    fixes = {"cheaper_sample": {"ms": 0.05}}
    return Scenario(f"run_count_drawn_{number}", why, diagnosed_with_trials, arguments, words, fixes)


def _library_threads(number: int) -> Scenario:
    arguments = {"of": "opaque", "kind": "Matrices", "ms": _DRAW.ms(2, 6), "workers": _DRAW.choice([2, 3])}
    why = "NumPy multiplies matrices for {ms} ms a sample, in two threads in each of {workers} workers.".format(
        **arguments
    )
    words = because_of("sample", "oversubscription cpu")
    fixes = {"library_threads": {"axes": {"worker_threads": 1}}}
    return Scenario(f"run_threads_drawn_{number}", why, diagnosed_with_trials, arguments, words, fixes)


SCENARIOS = (*map(_computing, range(8)), *map(_library_threads, range(2)))
