"""Adds up the cost of stages in a loop's body, by kind of batch."""

from __future__ import annotations

from collections import Counter, defaultdict

from loaderbench.profiler.device_stages import DeviceStages
from loaderbench.records import StageCost
from loaderbench.tracing.clock import StageClock, thread

AROUND = "code around the loader"
"""Time in this stage of the loop counts as data wait, not as step time."""

Seconds = defaultdict[tuple[int, str], float]


class HostAndDevice:
    """A stage clock that also times stages on the device. It is used like the host's clock."""

    def __init__(self, host: StageClock, device: DeviceStages) -> None:
        self._host, self._device = host, device

    @property
    def ident(self) -> int:
        """The id of the thread being timed, or 0."""
        return self._host.ident

    def enter(self, stage: int) -> None:
        """Enter a stage."""
        self._host.enter(stage)
        self._device.enter(stage)

    def leave(self) -> None:
        """Leave the innermost stage."""
        self._device.leave()
        self._host.leave()


class UserStages:
    """Adds up wall and CPU seconds by stage, separately for each kind of batch: a mean never mixes kinds.

    Every thread has its own clock, which is never reset: its increase since the last reading is new time. `on_device`
    times the stages of the loop's own thread on the device, once there is one.

    If only some bodies are divided, `end_body` gets the duration of each of them, and only those count.
    """

    on_device: DeviceStages | None = None

    def __init__(self) -> None:
        self._clocks: dict[int, StageClock] = {}
        self._places: dict[str, int] = {"": 0}  # "": outside of any stage
        self._reported: dict[int, tuple[list[float], list[float]]] = {}
        self._wall_s: Seconds = defaultdict(float)
        self._cpu_s: Seconds = defaultdict(float)
        self._divided: Counter[int] = Counter()
        self._divided_s: defaultdict[int, float] = defaultdict(float)

    @property
    def marked(self) -> bool:
        """Whether the loop has entered any stage."""
        return len(self._places) > 1

    def find(self, name: str, *, of_loop: bool = False) -> tuple[StageClock | HostAndDevice, int]:
        """The running clock of the calling thread, and the stage's number; `of_loop`: the thread is the loop's own."""
        place = self._places.setdefault(name, len(self._places))
        clock = self._clocks.setdefault(thread(), StageClock())
        while len(clock.calls) <= place:
            clock.add_stage()
        if not clock.ident:
            clock.begin(0)
        on_device = self.on_device if of_loop else None
        return (clock if on_device is None else HostAndDevice(clock, on_device)), place

    def end_body(self, kind: int, took_s: float | None = None) -> None:
        """Add time charged since the last batch to its kind. `took_s` is set if only some bodies are divided.

        The loop now asks for the next batch. A stage that is open at this point, for example around `next(batches)`,
        ends here, because the wait that follows is data wait.
        """
        own = self._clocks.get(thread())
        if own is not None and own.ident and own.stack:
            own.turn(0)
        if took_s is not None:
            self._divided[kind] += 1
            self._divided_s[kind] += took_s
        names = {place: name for name, place in self._places.items()}
        for ident, clock in list(self._clocks.items()):
            wall_s, cpu_s = clock.wall_s.copy(), clock.cpu_s.copy()
            before = self._reported.get(ident, ([], []))
            for place in range(1, len(wall_s)):
                self._wall_s[kind, names[place]] += wall_s[place] - _at(before[0], place)
                self._cpu_s[kind, names[place]] += cpu_s[place] - _at(before[1], place)
            self._reported[ident] = wall_s, cpu_s
        if self.on_device is not None:
            self.on_device.end_body(kind)

    def costs(self, kind: int, batches: int, step_s: float | None) -> dict[str, StageCost]:
        """Seconds per batch of this kind: wall time, on the device if timed there, and CPU time of the host.

        If only some bodies are divided, a stage gets its share of them, applied to the mean step `step_s`: divided
        bodies take slightly longer than others. Device times do not include that cost, so they are plain means over
        divided bodies.
        """
        passed_s = {name: self._passed_s(kind, name) for name in self._places}
        each = self._share_of_a_batch(kind, batches, step_s)
        return {
            name: StageCost(self._cpu_s.get((kind, name), 0.0) * each, wall_s * each)
            for name, wall_s in passed_s.items()
            if wall_s > 0
        }

    def divided(self, kind: int) -> int | None:
        """The number of divided bodies; `None` if all were."""
        return self._divided[kind] if self._divided else None

    def _share_of_a_batch(self, kind: int, batches: int, step_s: float | None) -> float:
        if not self._divided:
            return 1 / batches
        if self.on_device is None and step_s is not None and self._divided_s[kind]:
            return step_s / self._divided_s[kind]
        return 1 / max(1, self._divided[kind])

    def _passed_s(self, kind: int, name: str) -> float:
        on_device = self.on_device.seconds(kind, self._places[name]) if self.on_device else None
        return self._wall_s.get((kind, name), 0.0) if on_device is None else on_device


def _at(values: list[float], place: int) -> float:
    return values[place] if place < len(values) else 0.0
