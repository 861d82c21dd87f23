"""Reasons to distrust a run, each in one sentence with its number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from loaderbench.analysis.intervals import FEWEST_ROUNDS, excludes_one, ratio_interval
from loaderbench.records import Configuration, Interval, Noise, Overhead, Trial

DRIFT = 1.3  # slowest over fastest of the fixed piece of work; a still machine stays within 1.1
BUSY_PERCENT = 20.0  # of all CPUs, before the first trial
WIDE = 0.25  # half an interval, as a share of its estimate


def describe_noise(trials: Sequence[Trial], twins: Sequence[Trial], cpu_percent_before: float | None) -> Noise:
    """Spread of the reference decodes, and the difference of a configuration from itself."""
    times_s = [
        time_s
        for trial in (*trials, *twins)
        for time_s in (trial.reference_decode_before_s, trial.reference_decode_after_s)
        if time_s
    ]
    same = [trial for trial in trials if twins and trial.config == twins[0].config]
    rates: list[dict[int, float]] = [
        {trial.round: trial.samples_per_s for trial in group if trial.samples_per_s is not None}
        for group in (twins, same)
    ]
    aa = ratio_interval(rates[0], rates[1])
    return Noise(
        reference_decode_spread=max(times_s) / min(times_s) if times_s else None,
        aa_difference=aa,
        aa_trials=tuple(twins),
        cpu_percent_before=cpu_percent_before,
        not_measured={} if aa else {"aa_difference": f"it needs {FEWEST_ROUNDS} rounds with both of the pair"},
    )


def describe_overhead(trials: Sequence[Trial]) -> Overhead | None:
    """What the recorder cost per batch (largest of all trials) and of the wall time, and what the monitors took."""
    done = [trial for trial in trials if trial.recorder_s_per_batch is not None and trial.steady_s]
    if not done:
        return None
    shares = [(t.recorder_s_per_batch or 0) * (t.batches or 0) / (t.steady_s or 1) for t in done]
    return Overhead(
        per_batch_s=max(trial.recorder_s_per_batch or 0 for trial in done),
        share_of_wall=max(shares),
        monitor_cpu_share=max(trial.monitor_cpu_share or 0 for trial in done),
    )


def find_doubts(trials: Sequence[Trial], configurations: Sequence[Configuration], noise: Noise) -> Iterator[str]:
    """Yield the reasons, the weightiest first."""
    yield from _failures(trials)
    rounds = len({trial.round for trial in trials if trial.status == "completed"})
    if 0 < rounds < FEWEST_ROUNDS:
        yield f"n = {rounds}: on fewer than {FEWEST_ROUNDS} rounds no configuration is named best"
    busy = noise.cpu_percent_before
    if busy is not None and busy >= BUSY_PERCENT:
        yield f"other programs used {busy:.0f} % of the CPUs before the first trial"
    spread = noise.reference_decode_spread
    if spread is not None and spread >= DRIFT:
        yield f"the machine's speed changed by a factor of {spread:.1f} while it was measured (one fixed JPEG decode)"
    if noise.aa_difference and excludes_one(noise.aa_difference):
        yield f"one configuration measured as if it were two differed from itself by {_difference(noise.aa_difference)}"
    wide = [c for c in configurations if c.samples_per_s and _half_width(c.samples_per_s) > WIDE]
    if wide:
        count = f"{len(wide)} of {len(configurations)} configurations"
        yield f"{count} vary by more than \N{PLUS-MINUS SIGN}{WIDE * 100:.0f} % between rounds"


def _failures(trials: Sequence[Trial]) -> Iterator[str]:
    kinds = Counter(trial.failure.kind for trial in trials if trial.failure)
    if kinds:
        named = ", ".join(f"{kind} ({count})" for kind, count in kinds.most_common())
        yield f"{sum(kinds.values())} of {len(trials)} trials failed: {named}"


def _half_width(interval: Interval) -> float:
    if interval.lo is None or interval.hi is None:
        return 0.0
    return (interval.hi - interval.lo) / 2 / interval.est


def _difference(ratio: Interval) -> str:
    return f"{abs(ratio.est - 1):.0%}".replace("%", " %")
