"""Passes the numbers of a running script to trackers.

Threads of this process read what the script's processes save; the script's own processes are not involved. A point
covers the time between two saves of a loader's recording, because means over all recorded time would hide a change
after an hour.
"""

from __future__ import annotations

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
from loaderbench.new_files import numbered
from loaderbench.records import Trial
from loaderbench.records.metrics import BY_ID, METRICS, Metric
from loaderbench.records.timeline import Series
from loaderbench.script.recording import Recording, own_files, read_file
from loaderbench.stderr import say

LOOK_S = 0.5
END_S = 10.0
"""Seconds for a tracker to accept the last numbers once the script has ended."""

_MOST_TEXT = 300  # characters of an error message: a server may send a full page


@dataclass(frozen=True)
class LiveTo:
    """A tracker that follows a script: `name` is the user's name for it, and `open` can raise loaderbench errors."""

    name: str
    open: Callable[[], LiveTracker]


@dataclass
class _Loader:
    """A loader in one process, with its sums at the last two points."""

    name: str
    rank: int | None
    sums: list[SoFar] = field(default_factory=lambda: [SoFar(), SoFar()])

    def point(self, recording: Recording) -> LivePoint | None:
        """The loader's numbers since its last point; `None` if there is no new batch.

        The last save covers a short time, in which workers only deliver batches that were ready. If that time is less
        than half of the previous point's, the two are joined.
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
    """Thread that looks for new saves and passes them to one tracker.

    An exception is printed as one line, and ends this tracker only.
    """

    def __init__(self, name: str, tracker: LiveTracker, folder: Path) -> None:
        super().__init__(name=f"loaderbench-live-{name}", daemon=True)
        self.over = threading.Event()
        self._called, self._tracker, self._folder = name, tracker, folder
        self._saved_ns: dict[Path, int] = {}
        self._loaders: dict[tuple[Path, int], _Loader] = {}

    def run(self) -> None:
        """Follow the saves until `over` is set, then pass on the last one."""
        try:
            while not self.over.wait(LOOK_S):
                self._take()
            self._take()
            self._tracker.close()
        except Exception as error:
            text = " ".join(f"{type(error).__name__}: {error}".split())[:_MOST_TEXT]
            say(printable(f"--live {self._called}: {text}; the script continues, without this tracker"))
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
        """The loader at this position of a file. Loaders with the same name in one rank are numbered."""
        if key not in self._loaders:
            taken = {one.name for one in self._loaders.values() if one.rank == recording.rank}
            name = next(one for one in numbered(recording.folder_name) if one not in taken)
            self._loaders[key] = _Loader(name, recording.rank)
        return self._loaders[key]


def open_trackers(asked: Sequence[LiveTo]) -> list[tuple[str, LiveTracker]]:
    """Open all trackers, or none. They can change this process's environment and take seconds to import."""
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
    """Pass everything saved in the folder to each tracker, and close the trackers at the end."""
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
                say(printable(f"--live {name}: did not take the last numbers within {END_S:.0f} s"))


@dataclass(frozen=True, kw_only=True)
class SoFar:
    """Sums over the batches that count: warm-up batches, until there are others.

    `seconds` is the time of the loop. `wait_s` is its data wait without code around the loader, for which only the mean
    is known. `read_s` is the last time at which each series was read.
    """

    batches: int = 0
    warmup: int = 0
    samples: int = 0
    seconds: float = 0.0
    wait_s: float = 0.0
    read_s: Mapping[str, float] = field(default_factory=dict)

    @property
    def recorded(self) -> int:
        """The number of all batches, including the warm-up."""
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
    """All measured metrics, by id.

    Samples per second, data wait and monitor readings cover the time since `before`. All other metrics cover the entire
    recording, and `batches` includes the warm-up. Empty if nothing was recorded since.
    """
    (trial,) = recording.measured.trials
    now = so_far(recording)
    before = before if before.warmup == now.warmup else SoFar()  # these sums exclude the warm-up
    seconds = now.seconds - before.seconds
    if seconds <= 0:
        return {}
    found = {name: value for name, value in numbers_of_trial(trial).items() if value or BY_ID[name].zeros}
    series = recording.readings.of(trial.id)
    for metric in METRICS:
        own = {name: series[name] for name in _series_names(metric, trial) if name in series}
        since = [
            value for name in own if (value := _value_since(metric, own[name], before.read_s.get(name))) is not None
        ]
        if own:
            found.pop(metric.id, None)
        if since:
            found[metric.id] = max(since)  # the highest of several devices, as in a trial
    wait_s = now.wait_s - before.wait_s + recording.around_s * (now.batches - before.batches)
    return found | {
        "samples_per_s": (now.samples - before.samples) / seconds,
        "data_wait_share": min(1.0, max(0.0, wait_s / seconds)),
        "batches": float(now.recorded),
    }


def _series_names(metric: Metric, trial: Trial) -> list[str]:
    """The series that hold this metric over time; none if they use another unit, as for waits."""
    strip = metric.strip
    if strip.unit != metric.unit:
        return []
    return [strip.series.format(gpu.index) for gpu in trial.gpus] if metric.gpu else [strip.series]


def _value_since(metric: Metric, read: Series, after_s: float | None) -> float | None:
    """The mean, or the largest, of the values read after this moment; `None` if there are none."""
    values = [value for at_s, value in zip(*read, strict=True) if after_s is None or at_s > after_s]
    if not values:
        return None
    return max(values) if metric.over_rounds == "largest" else fmean(values)
