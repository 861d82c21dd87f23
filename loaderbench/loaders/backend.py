"""What makes batches: as a suite knows it (`LoaderBackend`), and made, in a trial's process (`Batches`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from multiprocessing import active_children
from typing import Any, ClassVar, Literal

from loaderbench.options import Check
from loaderbench.records import Config, Scalar

TracedIn = Literal["data_loader", "threads", "caller", "nowhere"]
"""Torch's `DataLoader` and its workers; threads that run the dataset's own code; the consumer's own thread; unseen."""


@dataclass(frozen=True)
class Batches:
    """What a trial iterates over.

    `ahead` batches are ready or in flight before the first is asked for. Workers deliver in turn: a rate
    needs at least `cycle` batches. `configured` are the arguments that took effect. `batch_size` and
    `samples_per_epoch` are `None` where they are unknown.
    """

    iterable: Iterable[Any]
    ahead: int = 0
    cycle: int = 1
    configured: frozenset[str] = frozenset()
    batch_size: int | None = None
    samples_per_epoch: int | None = None

    @property
    def traced_in(self) -> TracedIn:
        """Where the code that makes samples runs, as far as its stages can be timed."""
        return "caller"

    @property
    def is_divided(self) -> bool:
        """Whether each rank of a process group is known to load a part of its own."""
        return False

    @property
    def can_be_stopped(self) -> bool:
        """Whether everything that loads can safely be stopped in the middle of a batch and continued later."""
        return False

    def worker_pids(self) -> list[int]:
        """The processes that load, by their numbers; none where threads of this process do."""
        return [child.pid for child in active_children() if child.pid]

    def loading_threads(self) -> list[int]:
        """The threads of this process that load, by the kernel's numbers; none where processes do."""
        return []

    def close(self, iterator: Iterator[Any] | None = None) -> None:
        """End what makes the batches, at their end or before it; `iterator` is the last one over them, if known."""
        if isinstance(iterator, Generator):
            iterator.close()


@dataclass(frozen=True)
class Prefetch:
    """How a loader reads ahead, as far as its arguments say: what they leave open is `None`.

    A worker is whatever loads at the same time as others; 0 where the consumer's own thread does. `queued` are the
    batches of all workers together, where the loader counts them so. `shares_memory`: batches come from other processes
    through shared memory.
    """

    workers: int | None = None
    batches_per_worker: int | None = None
    batch_size: int | None = None
    queued: int | None = None
    shares_memory: bool = True

    @property
    def batches(self) -> int | None:
        """How many are ready or in flight before they are asked for."""
        if self.queued is not None:
            return self.queued
        if self.workers is None or self.batches_per_worker is None:
            return None
        return self.workers * self.batches_per_worker


@dataclass(frozen=True)
class WorkerOption:
    """What each process that loads sets up for itself, of any dataset.

    `set_up` is called with its value in a process that loads, unless that is one of `nothing`. `code` are the lines
    that do the same in a program to paste, and `code_above` what they need at the top.
    """

    check: Check
    set_up: Callable[[Any], None]
    code: Callable[[Any], list[str]]
    code_above: Callable[[Any], str] = lambda _: ""
    nothing: tuple[Any, ...] = (None, False)

    def is_nothing(self, value: Any) -> bool:
        """Whether this value asks for nothing; 0 may ask for something where `False` does not."""
        return any(type(value) is type(nothing) and value == nothing for nothing in self.nothing)


class LoaderBackend(ABC):
    """One value of the axis `loader`.

    A simple one has its `arguments` and `build`.
    """

    called: ClassVar[str] = ""
    """What its users call it, if not by the axis."""

    needs: ClassVar[str] = ""
    """The module of the library that it is made of; empty for torch's own."""

    install: ClassVar[str] = ""
    """The command that installs that library."""

    decodes: ClassVar[bool] = False
    """Whether it reads and decodes files and runs a named transform by itself, in place of the dataset."""

    format: ClassVar[str] = ""
    """The one format that it reads, by its name; empty where it reads what the dataset gives."""

    is_torchs: ClassVar[bool] = False
    """Whether it is a `DataLoader` of torch, with a sampler and a `collate_fn`."""

    reads_stores: ClassVar[bool] = False
    """Whether it reads that format from an object store, too."""

    arguments: ClassVar[Mapping[str, Check]] = {}
    """Its own arguments, and what their values have to be."""

    worker_options: ClassVar[Mapping[str, Check]] = {}
    """The names of its `WorkerOption`s, and what their values have to be."""

    auto: ClassVar[Mapping[str, Callable[[float], list[Scalar]]]] = {}
    """Axes that can be `auto`, and a function from the available CPUs to their values."""

    today: ClassVar[Config] = {}
    """What its users have who set nothing, where it is among the values of an axis: for the baseline."""

    idle_without_accelerator: ClassVar[Mapping[str, tuple[Scalar, str]]] = {}
    """Axes of one value on a machine without an accelerator: that value, and why."""

    collapsing: ClassVar[Mapping[str, str]] = {}
    """Axes whose values are one configuration under others' values, and why; see `normalised`."""

    worker_axes: ClassVar[frozenset[str]] = frozenset()
    """Axes that say how many workers load, and how they do it."""

    def is_installed(self) -> bool:
        """Whether its library is there, without importing it."""
        return not self.needs or find_spec(self.needs) is not None

    @property
    def axes(self) -> Mapping[str, Check]:
        """All that it can be given."""
        return {**self.arguments, **self.worker_options}

    def normalised(self, config: Config, fixed: Mapping[str, Any]) -> Config:
        """The configuration with one value for what makes no difference; `fixed` are the suite's own arguments."""
        return config

    def uses_accelerator(self, arguments: Mapping[str, Any]) -> bool:
        """Whether these arguments make it use an accelerator by itself, such as memory that is pinned for one."""
        idle = {axis: value for axis, (value, _) in self.idle_without_accelerator.items()}
        return any(arguments.get(axis, value) != value for axis, value in idle.items())

    def prefetch(self, arguments: Mapping[str, Any]) -> Prefetch:
        """How it reads ahead with these arguments, which may come from a saved run and hold anything."""
        return Prefetch(batch_size=arguments.get("batch_size"))

    def loading_in(self, workers: int, arguments: Mapping[str, Any]) -> Config:
        """The one argument, with its value, that makes so many load at the same time."""
        return {"num_workers": workers}

    @abstractmethod
    def build(self, source: Any, arguments: Mapping[str, Any], *, seed: int) -> Batches:
        """Make batches of what a dataset gave, in a trial's process. Raises `TypeError` for what it cannot take."""

    def code(self, arguments: Mapping[str, Any], comments: Sequence[str]) -> list[str]:
        """Parts of a program that make `loader` from `dataset`; `comments` precede the last."""
        shown = "".join(f", {name}={value!r}" for name, value in arguments.items() if name in self.axes)
        return ["\n".join([*comments, f"loader = ...  # {type(self).__name__}(dataset{shown})"])]
