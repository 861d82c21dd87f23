"""What the trials of one rung of the ladder tell: seconds per batch, by round, or why nothing."""

from __future__ import annotations

from collections.abc import Sequence

from loaderbench.analysis.failures import last_words
from loaderbench.analysis.intervals import rate_interval
from loaderbench.records import Rung, RungName, Trial

FEWEST_BATCHES = 5  # of a steady state that ended before its time
SAME_SIZE = 0.01  # batches that differ by less on average are of one size

Times = dict[int, float]
"""Round number to seconds per batch, or per sample."""


def usable(trial: Trial) -> bool:
    """Whether a trial saw a steady state: one that ended before its time needs batches enough."""
    seen = trial.status == "completed" and bool(trial.samples and trial.batches and trial.steady_s)
    return seen and not (trial.ended_early and (trial.batches or 0) < FEWEST_BATCHES)


def of_one_size(trials: Sequence[Trial]) -> bool:
    """Whether their batches hold as many samples, so that seconds per batch can be compared."""
    sizes = [samples_per_batch(trial) for trial in trials if usable(trial)]
    return not sizes or max(sizes) <= (1 + SAME_SIZE) * min(sizes)


def samples_per_batch(trial: Trial) -> float:
    """On average, over the steady state."""
    return (trial.samples or 0) / (trial.batches or 1)


def times_of(trials: Sequence[Trial], *, per_batch: bool) -> Times:
    """Seconds per batch, or per sample, by round."""
    return {
        trial.round: (trial.steady_s or 0) / ((trial.batches if per_batch else trial.samples) or 1)
        for trial in trials
        if usable(trial)
    }


def describe_rung(name: RungName, trials: Sequence[Trial], times: Times, left_out: str | None) -> Rung:
    """The rung over its rounds; `left_out` is why it was not measured."""
    rates = [trial.samples_per_s for trial in trials if usable(trial) and trial.samples_per_s]
    why = None if times else _why_not(trials, left_out)
    return Rung(
        name=name,
        time_s=rate_interval(list(times.values())) if times else None,
        samples_per_s=rate_interval(rates) if rates else None,
        trials=tuple(trial.id for trial in trials),
        not_measured=dict.fromkeys(("time_s", "samples_per_s"), why) if why else {},
    )


def _why_not(trials: Sequence[Trial], left_out: str | None) -> str:
    failure = next((trial.failure for trial in trials if trial.failure), None)
    if failure is not None:
        return f"its trial failed: {failure.kind.replace('_', ' ')}: {last_words(failure.message)}"
    if trials:
        return f"it ended after {trials[-1].batches} batches, before a steady state was seen"
    return left_out or "not run"
