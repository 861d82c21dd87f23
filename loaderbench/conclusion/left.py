"""A run that was killed, or is under way: its `run.json` is of its start, its trials are in `trials.jsonl` alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loaderbench.conclusion.conclude import conclude_again
from loaderbench.plan import is_of_sweep
from loaderbench.records import RunRecord, Trial


def has_left_trials(run: RunRecord) -> bool:
    """Whether trials may be on the disk that the run does not hold."""
    return not run.complete and not run.trials and run.kind == "sweep"


def with_left_trials(run: RunRecord, trials: Sequence[Trial]) -> RunRecord:
    """The same run with the trials of its sweep, concluded from them; those of a ladder or a remedy are left aside."""
    found = [trial for trial in trials if is_of_sweep(trial)]
    if not found:
        return run
    twins = tuple(trial for trial in found if trial.id.endswith("-aa"))
    own = tuple(trial for trial in found if trial not in twins)
    return conclude_again(replace(run, trials=own, noise=replace(run.noise, aa_trials=twins)))
