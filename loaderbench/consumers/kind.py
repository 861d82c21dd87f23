"""The interfaces of a consumer: to a suite and its report texts (`ConsumerKind`), and to a recorder (`Consumer`)."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

from loaderbench.options import Part
from loaderbench.records import AssumedDemand

Clock = Callable[[], float]
"""Returns the time in seconds; only differences are meaningful."""


class WaitClock(Protocol):
    """Times the data wait: the part of `next()` during which the consumer has nothing left to compute."""

    def ask(self) -> None:
        """Record the time before `next()`."""

    def got(self) -> None:
        """Record the time after `next()`."""

    def waits_s(self) -> list[float]:
        """Return the wait of every batch so far, in seconds; may block until the device has reported them."""
        ...


class Consumer(Protocol):
    """Consumes batches sequentially."""

    @property
    def wait_clock(self) -> WaitClock:
        """The clock that knows when this consumer runs out of work."""
        ...

    def consume(self, batch: Any, samples: int) -> None:
        """Consume one batch; returns as soon as a training loop could request the next."""


@runtime_checkable
class WithNote(Protocol):
    """A consumer that can report how it consumed batches."""

    note: str


@runtime_checkable
class WithPrecision(Protocol):
    """A consumer that trains, and knows its data type once training has begun; empty if it does not train."""

    computes_in: str


class HostWaitClock:
    """Waits on the host's clock, from the later of the call and the moment when the consumer ran out of work."""

    def __init__(self, drained_at_s: Clock = lambda: 0.0, clock: Clock = time.monotonic) -> None:
        self._drained_at_s, self._clock = drained_at_s, clock
        self._asked_s = 0.0
        self._waits_s: list[float] = []

    def ask(self) -> None:
        """Record the time before `next()`."""
        self._asked_s = self._clock()

    def got(self) -> None:
        """Record the wait that ends now."""
        self._waits_s.append(max(0.0, self._clock() - max(self._asked_s, self._drained_at_s())))

    def waits_s(self) -> list[float]:
        """Return the wait of every batch so far, in seconds."""
        return self._waits_s


class OptionProblem(NamedTuple):
    """A problem with an option of the section `consumer`, or with the complete section if `option` is `None`.

    `at_key`: report the position of the key; otherwise that of the value.
    """

    option: str | None
    what: str
    at_key: bool = False


class ConsumerKind(Part):
    """A value of `consumer.kind`. The fields are options under `consumer`; class attributes describe the kind in texts.

    The options of all kinds share one section, so an option name has the same meaning in all kinds.
    """

    who: ClassVar[str] = "consumer"
    """A noun for the consumer: used in sentences, and as the name of its lane in the report."""

    consumes: ClassVar[bool] = True
    """Whether the consumer takes any time at all; otherwise the loader runs alone."""

    capped: ClassVar[bool] = False
    """Whether `assumed_demand` caps the rate at which it consumes, in samples/s."""

    why_not_replayed: ClassVar[str] = ""
    """Why the consumer's speed is known without replaying cached batches; empty if a replay is needed."""

    auto: ClassVar[Literal["accelerator", "host"] | None] = None
    """The machines on which `kind: auto` selects this kind: those with an accelerator, or those without."""

    asked_for_by: ClassVar[tuple[str, ...]] = ()
    """Options that make `kind: auto` select this kind on every machine, and that no other kind has."""

    of_loop: ClassVar[bool] = False
    """Whether the consumer is the user's own loop, which has a single process and configuration."""

    modules_of_ranks: ClassVar[tuple[str, ...]] = ()
    """Slow imports that every rank needs for this consumer; imported once, before ranks are forked."""

    texts: ClassVar[tuple[str, ...]] = ()
    """Options that always stay text."""

    def describe(self) -> str:
        """A line of the plan that describes the computation; empty if the kind's name suffices."""
        return ""

    @property
    def asked_for(self) -> bool:
        """Whether the options make `kind: auto` select this kind on every machine."""
        return any(getattr(self, option) is not None for option in self.asked_for_by)

    @property
    def needs_accelerator(self) -> bool:
        """Whether the consumer requires a GPU."""
        return False

    @property
    def may_use_device(self) -> bool:
        """Whether the consumer uses a GPU if there is one: trials then initialize CUDA, and share its memory."""
        return False

    @property
    def uses_all_gpus(self) -> bool:
        """Whether the consumer computes on all GPUs instead of one."""
        return False

    @property
    def start_s(self) -> float:
        """Seconds before the first batch of each trial, in addition to initializing CUDA. Used by the plan."""
        return 0.0

    @property
    def queues_steps(self) -> bool:
        """Whether the host queues steps on a device before it waits for one."""
        return False

    @property
    def device_name(self) -> str:
        """The device of batches that are already on a device, by torch's name."""
        return "cuda"

    def why_not_on(self, gpus: int) -> str:
        """Why the consumer cannot run on a machine with this many GPUs, at least one; empty if it can."""
        return ""

    @property
    def in_step(self) -> bool:
        """Whether ranks with this consumer start each step together."""
        return False

    def why_not_in_ranks(self, ranks: int, gpus: int) -> str:
        """Why this many ranks, two or more, cannot run on a machine with this many GPUs; empty if they can."""
        return ""

    def assumed_demand(self, folder: Path) -> AssumedDemand | None:
        """The rate at which it takes samples, with its source; `None` for a kind whose rate is not assumed.

        `folder` is the suite's folder. Raises `MissingError` for a rate file that cannot be read.
        """
        return None

    def problems(self, *, chosen: bool) -> Iterator[OptionProblem]:
        """Yield problems of the options as a set. `chosen`: `kind` names this kind, instead of `auto`."""
        yield from ()

    def unknown_names(self, *, chosen: bool) -> Iterator[OptionProblem]:
        """Yield options that name something unknown. `chosen`: the suite names this kind, rather than `auto`."""
        yield from ()

    def why_not_made(self) -> str:
        """Why the installed packages cannot build this consumer; empty if they can.

        Called in a process that has imported torch and torchvision.
        """
        return ""

    def targets(self) -> list[str]:
        """Names of the form `package.module:name` that must be importable before the measurement."""
        return []

    def make_for_any_batch(self, config: Mapping[str, Any], folder: Path, clock: Clock, rate: float) -> Consumer:
        """Create the consumer after `kind: auto` selected it, possibly for batches it cannot train on.

        For such batches, `rate` is the rate of an emulated GPU, in samples/s.
        """
        return self.make(config, folder, clock)

    @abstractmethod
    def make(self, config: Mapping[str, Any], folder: Path, clock: Clock) -> Consumer:
        """Create the consumer in a trial's process.

        `config` has the trial's configuration and the arguments that the suite fixes. `folder` is the suite's folder.
        `clock` stops while the trial is stopped.
        """


class Loop(ConsumerKind):
    """The user's own training loop, which no suite can name."""

    who: ClassVar[str] = "training step"
    why_not_replayed: ClassVar[str] = "the loop's own time between batches is known"
    of_loop: ClassVar[bool] = True
