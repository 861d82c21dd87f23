"""The description of a loader in a suite (`LoaderBackend`), and the loader built in a trial's process (`Batches`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import active_children
from typing import Any, ClassVar, Literal

from loaderbench.libraries import is_installed
from loaderbench.options import Check
from loaderbench.records import Config, Scalar


class Code(str):
    """An argument of a program to paste that is code, such as the name of a function. Its `repr` has no quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


TracedIn = Literal["data_loader", "threads", "caller", "nowhere"]
"""Where samples are loaded: in torch's `DataLoader`, in threads, in the consumer's thread, or out of sight."""


@dataclass(frozen=True)
class Batches:
    """The batches that a trial iterates over.

    `ahead` batches are ready or in flight before the first is requested. Workers deliver in turn, so a rate needs at
    least `cycle` batches. `configured` are the arguments that took effect. `batch_size` and `samples_per_epoch` are
    `None` if unknown.
    """

    iterable: Iterable[Any]
    ahead: int = 0
    cycle: int = 1
    configured: frozenset[str] = frozenset()
    batch_size: int | None = None
    samples_per_epoch: int | None = None

    @property
    def traced_in(self) -> TracedIn:
        """Where sample code runs, as far as its stages can be timed."""
        return "caller"

    @property
    def is_divided(self) -> bool:
        """Whether each rank of a process group is known to load its own part of the samples."""
        return False

    @property
    def can_be_stopped(self) -> bool:
        """Whether all workers can safely be stopped in the middle of a batch and continued later."""
        return False

    def worker_pids(self) -> list[int]:
        """Process IDs of the workers; none if threads of this process load."""
        return [child.pid for child in active_children() if child.pid]

    def loading_threads(self) -> list[int]:
        """Kernel thread IDs of the loading threads in this process; none if processes load."""
        return []

    def close(self, iterator: Iterator[Any] | None = None) -> None:
        """Stop the workers, at the end of the batches or before; `iterator` is the last one over them, if known."""
        if isinstance(iterator, Generator):
            iterator.close()


@dataclass(frozen=True)
class Prefetch:
    """How a loader prefetches, as far as its arguments say; unknown values are `None`.

    A worker is any process or thread that loads in parallel; there are 0 if the consumer's thread loads. `queued` is
    the number of batches of all workers together, for loaders that limit it. `shares_memory`: batches come from other
    processes through shared memory.
    """

    workers: int | None = None
    batches_per_worker: int | None = None
    batch_size: int | None = None
    queued: int | None = None
    shares_memory: bool = True

    @property
    def batches(self) -> int | None:
        """Number of batches that are ready or in flight before they are requested."""
        if self.queued is not None:
            return self.queued
        if self.workers is None or self.batches_per_worker is None:
            return None
        return self.workers * self.batches_per_worker


@dataclass(frozen=True)
class WorkerOption:
    """An option that each loading process applies to itself, with any dataset.

    `set_up` is called with the option's value in each loading process, unless the value is one of `nothing`. `code`
    returns lines of a pasted program that do the same, and `code_above` returns the lines they need at the top.
    """

    check: Check
    set_up: Callable[[Any], None]
    code: Callable[[Any], list[str]]
    code_above: Callable[[Any], str] = lambda _: ""
    nothing: tuple[Any, ...] = (None, False)

    def is_nothing(self, value: Any) -> bool:
        """Whether this value requests nothing. 0 can request something where `False` does not."""
        return any(type(value) is type(nothing) and value == nothing for nothing in self.nothing)


class LoaderBackend(ABC):
    """A value of the axis `loader`.

    A simple backend defines only `arguments` and `build`.
    """

    display_name: ClassVar[str] = ""
    """The name that users know, if it differs from the axis value."""

    needs: ClassVar[str] = ""
    """The module of the required library; empty for torch's loader."""

    install: ClassVar[str] = ""
    """The command that installs the library."""

    decodes: ClassVar[bool] = False
    """Whether the backend reads and decodes files and runs a named transform by itself, in place of the dataset."""

    format: ClassVar[str] = ""
    """The only format that the backend reads; empty if it reads samples of the dataset."""

    is_torchs: ClassVar[bool] = False
    """Whether the backend is a `DataLoader` of torch, with a sampler and a `collate_fn`."""

    keeps_own_code: ClassVar[bool] = False
    """Whether the program to paste keeps the user's sampler and `collate_fn`."""

    reads_stores: ClassVar[bool] = False
    """Whether the backend also reads that format from an object store."""

    arguments: ClassVar[Mapping[str, Check]] = {}
    """Arguments of the backend, with the check of their values."""

    worker_options: ClassVar[Mapping[str, Check]] = {}
    """Names of the backend's `WorkerOption`s, with the check of their values."""

    auto: ClassVar[Mapping[str, Callable[[float], list[Scalar]]]] = {}
    """Axes that can be `auto`, and a function from the available CPUs to their values."""

    library_defaults: ClassVar[Config] = {}
    """Defaults of the library for users who set nothing; the baseline takes them if they are among an axis's values."""

    idle_without_accelerator: ClassVar[Mapping[str, tuple[Scalar, str]]] = {}
    """Axes that have a single value on a machine without an accelerator: that value, and the reason."""

    without_effect: ClassVar[Mapping[str, str]] = {}
    """Axes whose values make no difference together with certain other values, and the reason; see `normalized`."""

    worker_axes: ClassVar[frozenset[str]] = frozenset()
    """Axes that set how many workers load, and how they load."""

    def is_installed(self) -> bool:
        """Whether the library is installed, without importing it."""
        return not self.needs or is_installed(self.needs)

    @property
    def axes(self) -> Mapping[str, Check]:
        """All arguments that the backend accepts."""
        return {**self.arguments, **self.worker_options}

    def normalized(self, config: Config, fixed: Mapping[str, Any]) -> Config:
        """The configuration with one fixed value on axes without effect; `fixed` are the suite's fixed arguments."""
        return config

    def uses_accelerator(self, arguments: Mapping[str, Any]) -> bool:
        """Whether the loader itself uses an accelerator with these arguments, for example to pin memory."""
        idle = {axis: value for axis, (value, _) in self.idle_without_accelerator.items()}
        return any(arguments.get(axis, value) != value for axis, value in idle.items())

    def prefetch(self, arguments: Mapping[str, Any]) -> Prefetch:
        """How the loader prefetches with these arguments, which can come from a saved run and hold anything."""
        return Prefetch(batch_size=arguments.get("batch_size"))

    def starts_interpreters(self, arguments: Mapping[str, Any]) -> bool:
        """Whether each worker is a new Python interpreter, which imports all libraries before it loads a sample."""
        return False

    def loading_in(self, workers: int, arguments: Mapping[str, Any]) -> Config:
        """The argument, with its value, that makes this many workers or threads load in parallel."""
        return {"num_workers": workers}

    @abstractmethod
    def build(self, source: Any, arguments: Mapping[str, Any], *, seed: int) -> Batches:
        """Build batches from the result of a dataset, in a trial's process. Raises `TypeError` if unsupported."""

    def code(self, arguments: Mapping[str, Any], comments: Sequence[str]) -> list[str]:
        """Code that creates `loader` from `dataset`, in parts; `comments` precede the last part."""
        shown = "".join(f", {name}={value!r}" for name, value in arguments.items() if name in self.axes)
        return ["\n".join([*comments, f"loader = ...  # {type(self).__name__}(dataset{shown})"])]
