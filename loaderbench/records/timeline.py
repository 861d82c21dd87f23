"""What was read of a run over time: single batches on their way, and readings in arrays, as there can be a million."""

from __future__ import annotations

from array import array
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

MOMENTS = ("asked_s", "got_s", "ended_s", "began_s", "collate_began_s", "made_s")


@dataclass(frozen=True, kw_only=True)
class BatchTimes:
    """When one batch was made and taken. Moments are seconds of one clock, the same for all processes of a machine.

    `batch` is its number in its epoch, from 0. The loop called `next()` at `asked_s`, had the batch at `got_s` and was
    done with it at `ended_s`; `wait_s` of that is its data wait. All four are `None` for a batch that was never taken;
    `ended_s` alone where the loop was left with it.

    `worker` began it at `began_s`, started to collate at `collate_began_s` and was done at `made_s`: all `None` without
    tracing. `worker` alone is `None` for a batch that the main process made. `stages_s` are wall seconds of the timed
    samples by stage; not every sample is timed. `steady`: the batch belongs to the steady state.
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
        """The same batch with moments in seconds since `zero_s`, to the microsecond."""
        moments = {name: getattr(self, name) for name in MOMENTS}
        return replace(self, **{name: round(at - zero_s, 6) for name, at in moments.items() if at is not None})


Series = tuple["array[float]", "array[float]"]
"""Seconds since the trial began, and the values read then: two arrays of one length."""


@dataclass(frozen=True)
class TimelinePoint:
    """One reading of a monitor, `t_s` seconds after its trial began."""

    trial: str
    t_s: float
    metric: str
    value: float


class Readings:
    """The readings of a run by trial and metric, in the order they came: 16 bytes each.

    `batches` are those of each trial that were kept, in order, with moments in seconds since the trial began.
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
        """The arrays of one metric of one trial, to read or to append to; new ones where there are none yet."""
        return self._trials.setdefault(trial, {}).setdefault(metric, (array("d"), array("d")))

    def of(self, trial: str) -> dict[str, Series]:
        """All series of one trial by metric; empty where nothing was read of it."""
        return self._trials.get(trial, {})

    @property
    def batches(self) -> Mapping[str, Sequence[BatchTimes]]:
        """The batches that were kept, by trial."""
        return self._batches

    def keep_batches(self, trial: str, batches: Iterable[BatchTimes]) -> None:
        """Keep some batches of a trial."""
        if found := tuple(batches):
            self._batches[trial] = found

    def only(self, trials: Container[str]) -> Readings:
        """What belongs to these trials."""
        found = Readings()
        found._trials = {trial: series for trial, series in self._trials.items() if trial in trials}
        found._batches = {trial: batches for trial, batches in self._batches.items() if trial in trials}
        return found

    @property
    def trials(self) -> tuple[str, ...]:
        """The trials of which something was read."""
        return tuple(self._trials)

    def __len__(self) -> int:
        return sum(len(seconds) for metrics in self._trials.values() for seconds, _ in metrics.values())

    def __iter__(self) -> Iterator[TimelinePoint]:
        for trial, metrics in self._trials.items():
            for metric, (seconds, values) in metrics.items():
                yield from (TimelinePoint(trial, t_s, metric, v) for t_s, v in zip(seconds, values, strict=True))
