"""What a consumer is: to a suite and to the sentences about it (`ConsumerKind`), and to a recorder (`Consumer`)."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

from loaderbench.options import Part
from loaderbench.records import AssumedDemand

Clock = Callable[[], float]
"""Says the time in seconds; only differences mean something."""


class WaitClock(Protocol):
    """Times the data wait: what of `next()` was spent while nothing was left to compute."""

    def ask(self) -> None:
        """Note the moment before `next()`."""

    def got(self) -> None:
        """Note the moment after `next()`."""

    def waits_s(self) -> list[float]:
        """Return the wait of every batch so far, in seconds; may block until the device has reported them."""
        ...


class Consumer(Protocol):
    """Eats batches one after another."""

    @property
    def wait_clock(self) -> WaitClock:
        """The clock that knows when this consumer runs out of work."""
        ...

    def consume(self, batch: Any, samples: int) -> None:
        """Take one batch; returns as soon as a training loop could ask for the next."""


@runtime_checkable
class WithNote(Protocol):
    """A consumer that may have to say how it consumed batches."""

    note: str


@runtime_checkable
class WithPrecision(Protocol):
    """A consumer that trains, and knows in which type once it has begun; empty where it does not train."""

    computes_in: str


class HostWaitClock:
    """Waits by the host's clock, from the later of the call and the moment the consumer ran out of work."""

    def __init__(self, drained_at_s: Clock = lambda: 0.0, clock: Clock = time.monotonic) -> None:
        self._drained_at_s, self._clock = drained_at_s, clock
        self._asked_s = 0.0
        self._waits_s: list[float] = []

    def ask(self) -> None:
        """Note the moment before `next()`."""
        self._asked_s = self._clock()

    def got(self) -> None:
        """Note the wait that ends now."""
        self._waits_s.append(max(0.0, self._clock() - max(self._asked_s, self._drained_at_s())))

    def waits_s(self) -> list[float]:
        """Return the wait of every batch so far, in seconds."""
        return self._waits_s


class OptionProblem(NamedTuple):
    """What is wrong with an option of the section `consumer`, or with all of the section where `option` is `None`.

    `at_key`: the place to name is the key; else the value.
    """

    option: str | None
    what: str
    at_key: bool = False


class ConsumerKind(Part):
    """One value of `consumer.kind`. Its fields are options under `consumer`, its class says how it is spoken of.

    Options of all kinds share the one section: two kinds that name an option alike mean the same by it.
    """

    who: ClassVar[str] = "consumer"
    """Who takes the batches, as a noun: in sentences, and the name of its lane in the report."""

    consumes: ClassVar[bool] = True
    """Whether it takes any time at all; else the loader runs alone."""

    capped: ClassVar[bool] = False
    """Whether its `assumed_demand` caps the rate it consumes, samples/s."""

    why_not_replayed: ClassVar[str] = ""
    """Why cached batches need not be replayed to know its own pace; empty where they have to be."""

    auto: ClassVar[Literal["accelerator", "host"] | None] = None
    """Which machines `kind: auto` selects it on: those with an accelerator, or those without."""

    asked_for_by: ClassVar[tuple[str, ...]] = ()
    """Options that make `kind: auto` select it on every machine, and that no other kind takes."""

    of_loop: ClassVar[bool] = False
    """Whether it is the user's own loop, of which there is one process and no configuration but its own."""

    modules_of_ranks: ClassVar[tuple[str, ...]] = ()
    """What every rank would import to make it, which takes seconds: imported once, before ranks are forked."""

    texts: ClassVar[tuple[str, ...]] = ()
    """Options that stay text whatever they look like."""

    def describe(self) -> str:
        """What it computes, as a line of the plan; empty of a kind whose name says it all."""
        return ""

    @property
    def asked_for(self) -> bool:
        """Whether `kind: auto` selects it on every machine, by its options."""
        return any(getattr(self, option) is not None for option in self.asked_for_by)

    @property
    def needs_accelerator(self) -> bool:
        """Whether it cannot run without a GPU."""
        return False

    @property
    def may_use_device(self) -> bool:
        """Whether it uses a GPU where there is one: its trials begin with a start of CUDA, and share its memory."""
        return False

    @property
    def uses_all_gpus(self) -> bool:
        """Whether it computes on every GPU there is, and not on one."""
        return False

    @property
    def start_s(self) -> float:
        """Seconds that each trial takes for it before the first batch, besides a start of CUDA: for the plan."""
        return 0.0

    @property
    def device_name(self) -> str:
        """Where batches go that are on the device already, as torch names it."""
        return "cuda"

    def why_not_on(self, gpus: int) -> str:
        """Why it cannot run on a machine with so many GPUs, at least one; empty where it can."""
        return ""

    @property
    def in_step(self) -> bool:
        """Whether ranks with this consumer take each step together."""
        return False

    def why_not_in_ranks(self, ranks: int, gpus: int) -> str:
        """Why so many ranks, two or more, cannot run on a machine with so many GPUs; empty where they can."""
        return ""

    def assumed_demand(self, folder: Path) -> AssumedDemand | None:
        """The rate it takes samples at, with its source; `None` of a kind whose rate is its own.

        `folder` is the suite's own. Raises `MissingError` for a file of a rate that cannot be read.
        """
        return None

    def problems(self, *, chosen: bool) -> Iterator[OptionProblem]:
        """Yield what is wrong with the options taken together. `chosen`: `kind` names this one, and not `auto`."""
        yield from ()

    def why_not_made(self) -> str:
        """Why the installed packages cannot build this consumer; empty if they can.

        Called in a process that has imported torch and torchvision.
        """
        return ""

    def targets(self) -> list[str]:
        """What has to be importable before anything is measured: names of the form `package.module:name`."""
        return []

    def make_for_any_batch(self, config: Mapping[str, Any], folder: Path, clock: Clock, rate: float) -> Consumer:
        """Make it where `kind: auto` selected it: for batches of a dataset that nobody chose it for.

        `rate`, in samples/s, is that of an emulated GPU, for batches that it cannot take.
        """
        return self.make(config, folder, clock)

    @abstractmethod
    def make(self, config: Mapping[str, Any], folder: Path, clock: Clock) -> Consumer:
        """Make it in a trial's process.

        `config` is the trial's configuration, `folder` the suite's own. `clock` stops when the trial is stopped.
        """
