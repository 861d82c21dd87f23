"""Hands the numbers of a running script to trackers: what its processes save, read in threads of this process.

The script's own processes know nothing of it. A point is what a loader did between two saves of its recording: means
over all recorded time would hide a change that comes after an hour.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from loaderbench.errors import printable
from loaderbench.exporters.exporter import LivePoint, LiveTracker
from loaderbench.exporters.table import Numbers, numbers_of_trial
from loaderbench.records import Trial
from loaderbench.records.metrics import BY_ID, METRICS, Metric
from loaderbench.records.timeline import Series
from loaderbench.script.recording import Recording, own_files, read_file

LOOK_S = 0.5
END_S = 10.0
"""For a tracker to take the last numbers once the script has ended."""

_MOST_TEXT = 300  # characters of an error: a server's may be a page


@dataclass(frozen=True)
class LiveTo:
    """A tracker that is to follow a script: `name` is what the user called it, `open` may raise errors of ours."""

    name: str
    open: Callable[[], LiveTracker]


@dataclass
class _Loader:
    """A loader of one process, and its sums at the last two points."""

    name: str
    rank: int | None
    sums: list[SoFar] = field(default_factory=lambda: [SoFar(), SoFar()])

    def point(self, recording: Recording) -> LivePoint | None:
        """What it did since its last point; `None` without any new batch.

        What is saved at the end is of a short time, in which workers only deliver what was ready: it is joined with
        the point before if it is less than half as long.
        """
        now = so_far(recording)
        earlier, since = self.sums
        if now.recorded <= since.recorded:
            return None
        if recording.has_ended and now.seconds - since.seconds < (since.seconds - earlier.seconds) / 2:
            since = earlier
        self.sums = [self.sums[1], now]
        return LivePoint(
            loader=self.name, rank=self.rank, batches=now.recorded, numbers=numbers_since(since, recording)
        )


class _Follower(threading.Thread):
    """Looks for what was saved, and hands it to one tracker.

    An exception is printed as one line, and ends only this tracker.
    """

    def __init__(self, name: str, tracker: LiveTracker, folder: Path) -> None:
        super().__init__(name=f"loaderbench-live-{name}", daemon=True)
        self.over = threading.Event()
        self._called, self._tracker, self._folder = name, tracker, folder
        self._saved_ns: dict[Path, int] = {}
        self._loaders: dict[tuple[Path, int], _Loader] = {}

    def run(self) -> None:
        """Follow until `over`, then take what was saved last."""
        try:
            while not self.over.wait(LOOK_S):
                self._take()
            self._take()
            self._tracker.close()
        except Exception as error:
            text = " ".join(f"{type(error).__name__}: {error}".split())[:_MOST_TEXT]
            say(f"--live {self._called}: {text}; the script continues, without this tracker")
            with suppress(Exception):
                self._tracker.close()

    def _take(self) -> None:
        points = []
        for file in own_files(self._folder):
            saved_ns = file.stat().st_mtime_ns
            if self._saved_ns.get(file) == saved_ns:
                continue
            self._saved_ns[file] = saved_ns
            for place, recording in enumerate(read_file(file)):
                points.append(self._loader((file, place), recording).point(recording))
        if found := [point for point in points if point is not None]:
            self._tracker.write(found)

    def _loader(self, key: tuple[Path, int], recording: Recording) -> _Loader:
        """The loader of this place; of several with one name in one rank, the later ones get a number."""
        if key not in self._loaders:
            taken = {one.name for one in self._loaders.values() if one.rank == recording.rank}
            name = recording.folder_name
            names = [name, *(f"{name}-{number}" for number in range(2, len(taken) + 2))]
            self._loaders[key] = _Loader(next(one for one in names if one not in taken), recording.rank)
        return self._loaders[key]


def open_trackers(asked: Sequence[LiveTo]) -> list[tuple[str, LiveTracker]]:
    """Open each, or none. They may change the environment of this process, and take seconds to be imported."""
    found: list[tuple[str, LiveTracker]] = []
    try:
        found.extend((one.name, one.open()) for one in asked)
    except BaseException:
        for _, tracker in found:
            with suppress(Exception):
                tracker.close()
        raise
    return found


@contextmanager
def followed(folder: Path, trackers: Sequence[tuple[str, LiveTracker]]) -> Iterator[None]:
    """Hand what is saved in the folder to each tracker, and close them at the end."""
    followers = [_Follower(name, tracker, folder) for name, tracker in trackers]
    for one in followers:
        one.start()
    try:
        yield
    finally:
        for one in followers:
            one.over.set()
        until_s = time.monotonic() + END_S
        for (name, _), one in zip(trackers, followers, strict=True):
            one.join(max(0.0, until_s - time.monotonic()))
            if one.is_alive():
                say(f"--live {name}: did not take the last numbers within {END_S:.0f} s")


def say(line: str) -> None:
    """Print one line to stderr."""
    print(f"loaderbench: {printable(line)}", file=sys.stderr)


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
