"""What a loader did between two saves of its recording.

Means over all recorded time would hide a change that comes after an hour.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import fmean

from loaderbench.exporters.table import Numbers, numbers_of_trial
from loaderbench.records import Trial
from loaderbench.records.metrics import BY_ID, METRICS, Metric
from loaderbench.records.timeline import Series
from loaderbench.script.recording import Recording


@dataclass(frozen=True, kw_only=True)
class SoFar:
    """Sums over the batches that count, which are those of the warm-up until there are others.

    `seconds` are those of the loop. `wait_s` are those of its data wait without code around the loader, of which only
    the mean is known. `read_s` is when each series was read last.
    """

    batches: int = 0
    warmup: int = 0
    samples: int = 0
    seconds: float = 0.0
    wait_s: float = 0.0
    read_s: Mapping[str, float] = field(default_factory=dict)

    @property
    def recorded(self) -> int:
        """All batches, with those of the warm-up."""
        return self.batches + self.warmup


def so_far(recording: Recording) -> SoFar:
    """The sums of a recording; zeros before its first batch that counts."""
    (trial,) = recording.measured.trials
    if trial.status != "completed" or trial.data_wait is None:
        return SoFar()
    series = recording.readings.of(trial.id)
    return SoFar(
        batches=trial.batches or 0,
        warmup=trial.warmup_batches or 0,
        samples=trial.samples or 0,
        seconds=trial.steady_s or 0.0,
        wait_s=(trial.data_wait.mean_s - recording.around_s) * trial.data_wait.count,
        read_s={name: seconds[-1] for name, (seconds, _) in series.items() if seconds},
    )


def numbers_since(before: SoFar, recording: Recording) -> Numbers:
    """Every metric by its id, as far as it was measured.

    Samples per second, data wait and what monitors read over time are those since `before`. Everything else is that
    of the whole recording, and `batches` counts the warm-up. Empty where nothing was recorded since.
    """
    (trial,) = recording.measured.trials
    now = so_far(recording)
    before = before if before.warmup == now.warmup else SoFar()  # the warm-up's sums are not part of these
    seconds = now.seconds - before.seconds
    if seconds <= 0:
        return {}
    found = {name: value for name, value in numbers_of_trial(trial).items() if value or BY_ID[name].zeros}
    series = recording.readings.of(trial.id)
    for metric in METRICS:
        own = {name: series[name] for name in _series_names(metric, trial) if name in series}
        since = [value for name in own if (value := _since(metric, own[name], before.read_s.get(name))) is not None]
        if own:
            found.pop(metric.id, None)
        if since:
            found[metric.id] = max(since)  # of several devices the highest, as in a trial
    wait_s = now.wait_s - before.wait_s + recording.around_s * (now.batches - before.batches)
    return found | {
        "samples_per_s": (now.samples - before.samples) / seconds,
        "data_wait_share": min(1.0, max(0.0, wait_s / seconds)),
        "batches": float(now.recorded),
    }


def _series_names(metric: Metric, trial: Trial) -> list[str]:
    """The readings that are this metric over time; none where those are drawn in another unit, such as waits."""
    strip = metric.strip
    if strip.unit != metric.unit:
        return []
    return [strip.series.format(gpu.index) for gpu in trial.gpus] if metric.gpu else [strip.series]


def _since(metric: Metric, read: Series, after_s: float | None) -> float | None:
    """The mean of what was read after this moment, or the largest; `None` where nothing was."""
    values = [value for at_s, value in zip(*read, strict=True) if after_s is None or at_s > after_s]
    if not values:
        return None
    return max(values) if metric.over_rounds == "largest" else fmean(values)
