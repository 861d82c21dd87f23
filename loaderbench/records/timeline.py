"""Time series of a run: the times of single batches, and readings in arrays, as a run can have a million."""

from __future__ import annotations

from array import array
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

MOMENTS = ("asked_s", "got_s", "ended_s", "began_s", "collate_began_s", "made_s")


@dataclass(frozen=True, kw_only=True)
class BatchTimes:
    """When one batch was loaded and consumed. Times are seconds of a clock shared by all processes of a machine.

    `batch` is its number in its epoch, from 0. `steady` is true if the batch belongs to the steady state.

    The loop called `next()` at `asked_s`, received the batch at `got_s` and finished with it at `ended_s`. `wait_s` is
    the batch's data wait. All four are `None` for a batch that was never consumed. Only `ended_s` is `None` if the loop
    was left during this batch.

    A worker began the batch at `began_s`, started to collate at `collate_began_s` and finished at `made_s`. All three
    are `None` without tracing. `worker` is `None` for a batch that the main process loaded. `stages_s` is the wall time
    in seconds of the timed samples, by stage; not every sample is timed.
    """

    epoch: int
    batch: int
    samples: int
    steady: bool = False
    asked_s: float | None = None
    got_s: float | None = None
    wait_s: float | None = None
    ended_s: float | None = None
    worker: int | None = None
    began_s: float | None = None
    collate_began_s: float | None = None
    made_s: float | None = None
    stages_s: dict[str, float] = field(default_factory=dict)

    def since(self, zero_s: float) -> BatchTimes:
        """Return the batch with times in seconds since `zero_s`, rounded to the microsecond."""
        moments = {name: getattr(self, name) for name in MOMENTS}
        return replace(self, **{name: round(at - zero_s, 6) for name, at in moments.items() if at is not None})


Series = tuple["array[float]", "array[float]"]
"""Two arrays of equal length: seconds since the trial began, and values."""


@dataclass(frozen=True)
class TimelinePoint:
    """One reading of a monitor, `t_s` seconds after its trial began."""

    trial: str
    t_s: float
    metric: str
    value: float


class Readings:
    """The readings of a run by trial and metric, in the order they were added, at 16 bytes each.

    `batches` are the recorded batches of each trial, in order, with times in seconds since the trial began.
    """

    def __init__(self, points: Iterable[TimelinePoint] = ()) -> None:
        self._trials: dict[str, dict[str, Series]] = {}
        self._batches: dict[str, tuple[BatchTimes, ...]] = {}
        self.extend(points)

    def extend(self, points: Iterable[TimelinePoint]) -> None:
        """Add readings."""
        for point in points:
            seconds, values = self.series(point.trial, point.metric)
            seconds.append(point.t_s)
            values.append(point.value)

    def series(self, trial: str, metric: str) -> Series:
        """The arrays of one metric of one trial, to read or append to. They are created if missing."""
        return self._trials.setdefault(trial, {}).setdefault(metric, (array("d"), array("d")))

    def of(self, trial: str) -> dict[str, Series]:
        """All series of one trial, by metric; empty if the trial has no readings."""
        return self._trials.get(trial, {})

    @property
    def batches(self) -> Mapping[str, Sequence[BatchTimes]]:
        """The recorded batches, by trial."""
        return self._batches

    def keep_batches(self, trial: str, batches: Iterable[BatchTimes]) -> None:
        """Record batches of a trial."""
        if kept := tuple(batches):
            self._batches[trial] = kept

    def only(self, trials: Container[str]) -> Readings:
        """The readings and batches of the given trials."""
        selected = Readings()
        selected._trials = {trial: series for trial, series in self._trials.items() if trial in trials}
        selected._batches = {trial: batches for trial, batches in self._batches.items() if trial in trials}
        return selected

    @property
    def trials(self) -> tuple[str, ...]:
        """The trials with readings."""
        return tuple(self._trials)

    def __len__(self) -> int:
        return sum(len(seconds) for metrics in self._trials.values() for seconds, _ in metrics.values())

    def __iter__(self) -> Iterator[TimelinePoint]:
        for trial, metrics in self._trials.items():
            for metric, (seconds, values) in metrics.items():
                yield from (TimelinePoint(trial, t_s, metric, v) for t_s, v in zip(seconds, values, strict=True))
