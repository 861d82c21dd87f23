"""The backend `torch`: a `DataLoader` built from the configuration. torch is imported only when one is built."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count
from multiprocessing import get_start_method
from typing import TYPE_CHECKING, Any, ClassVar

from loaderbench.loaders.backend import Batches, Code, LoaderBackend, Prefetch, TracedIn
from loaderbench.loaders.shared_batches import SHARE, shared_among_ranks, sharing_code
from loaderbench.loaders.worker_options import WORKER_OPTIONS, setup_code, worker_setup
from loaderbench.options import Check, boolean, integer, nearest, number, one_of, text
from loaderbench.ranks import check_enough, has_ranks
from loaderbench.records import Config, Scalar

if TYPE_CHECKING:
    from torch.utils.data import DataLoader

MAX_BATCH_SIZE = 1_000_000
MAX_WORKERS = MAX_PREFETCH = 1_024  # far above what any host uses, far below what crashes one

PREFETCH = 2
"""Batches that each worker has ready or in flight by default: torch's default."""

NEEDS_WORKERS: Config = {
    "prefetch_factor": None,
    "persistent_workers": False,
    "multiprocessing_context": None,
    "timeout": 0,
    SHARE: False,
}
"""Arguments that torch rejects (or ignores) with `num_workers=0`, with the value that means "not given"."""

SETTABLE = (
    "num_workers", "prefetch_factor", "pin_memory", "timeout", "in_order", "multiprocessing_context",
    "persistent_workers",
)  # fmt: skip
"""Arguments that can still be set on an existing `DataLoader` before its first epoch."""

OBJECTS = ("sampler", "batch_sampler", "collate_fn", "worker_init_fn", "generator")
"""Arguments that are objects or functions, which a suite cannot express."""

_NO_ACCELERATOR = "no effect without a GPU; only false is measured"
_NO_WORKERS = "no effect with num_workers=0: measured once"


def worker_ladder(cpus_allotted: float) -> list[Scalar]:
    """Worker counts worth trying on this many CPUs: none, one, a quarter, half, all, and 1.5 times as many."""
    cpus = max(1, math.ceil(cpus_allotted))
    return [*sorted({0, 1, cpus // 4, cpus // 2, cpus, cpus + math.ceil(cpus / 2)})]


class TorchLoader(LoaderBackend):
    """`torch.utils.data.DataLoader` with an endless sampler."""

    display_name: ClassVar[str] = "DataLoader"
    is_torchs: ClassVar[bool] = True
    keeps_own_code: ClassVar[bool] = True
    arguments: ClassVar[Mapping[str, Check]] = {
        "batch_size": integer(1, MAX_BATCH_SIZE, or_null=True),
        "num_workers": integer(0, MAX_WORKERS),
        "pin_memory": boolean,
        "prefetch_factor": integer(1, MAX_PREFETCH, or_null=True),
        "persistent_workers": boolean,
        "drop_last": boolean,
        "shuffle": boolean,
        "timeout": number,
        "multiprocessing_context": one_of("fork", "forkserver", "spawn", None),
        "in_order": boolean,
        "pin_memory_device": text,
        SHARE: boolean,
    }
    worker_options: ClassVar[Mapping[str, Check]] = {name: option.check for name, option in WORKER_OPTIONS.items()}
    auto: ClassVar[Mapping[str, Callable[[float], list[Scalar]]]] = {"num_workers": worker_ladder}
    library_defaults: ClassVar[Config] = {"num_workers": 0, "pin_memory": False}
    idle_without_accelerator: ClassVar[Mapping[str, tuple[Scalar, str]]] = {"pin_memory": (False, _NO_ACCELERATOR)}
    without_effect: ClassVar[Mapping[str, str]] = dict.fromkeys(NEEDS_WORKERS, _NO_WORKERS)

    worker_axes: ClassVar[frozenset[str]] = frozenset(("num_workers", *NEEDS_WORKERS))

    def normalized(self, config: Config, fixed: Mapping[str, Any]) -> Config:
        """Replace the values of worker-only arguments if there are no workers."""
        if config.get("num_workers", fixed.get("num_workers", 0)) != 0:
            return config
        return {axis: NEEDS_WORKERS.get(axis, value) for axis, value in config.items()}

    def prefetch(self, arguments: Mapping[str, Any]) -> Prefetch:
        """`prefetch_factor`, or torch's default, for each worker process."""
        names = ("num_workers", "prefetch_factor", "batch_size")
        workers, each, size = (found if isinstance(found := arguments.get(name), int) else None for name in names)
        return Prefetch(workers, each or PREFETCH, size)

    def starts_interpreters(self, arguments: Mapping[str, Any]) -> bool:
        """Whether workers are spawned, or forked from a server without torch."""
        context = arguments.get("multiprocessing_context") or get_start_method()
        return bool(arguments.get("num_workers")) and context != "fork"

    def build(self, source: Any, arguments: Mapping[str, Any], *, seed: int) -> Batches:
        """Wrap a dataset, set the arguments a finished loader allows, and return any other iterable unchanged."""
        check_workers_every(1.0)
        found = build_loader(source, arguments, seed=seed)
        found = replace(found, configured=found.configured | (arguments.keys() & {SHARE}))
        has_workers = arguments.get("num_workers", getattr(found.iterable, "num_workers", 0))
        return shared_among_ranks(found) if arguments.get(SHARE) and has_workers else found

    def code(self, arguments: Mapping[str, Any], comments: Sequence[str]) -> list[str]:
        """Code of a `DataLoader`, and of the setup of its workers."""
        return self.code_over("dataset", arguments, comments)

    def code_over(self, source: str, arguments: Mapping[str, Any], comments: Sequence[str]) -> list[str]:
        """Code of a `DataLoader` over a variable of the program."""
        setup = setup_code(arguments)
        dropped = set(() if arguments.get("num_workers") else NEEDS_WORKERS)  # torch rejects these arguments
        if arguments.get("batch_size", 1) is None:
            dropped.add("drop_last")
        stated = {name: value for name, value in arguments.items() if name not in dropped and self._stated(name, value)}
        own_init, is_shared = stated.pop("worker_init_fn", None) if setup else None, stated.pop(SHARE, False)
        lines = [f"    {name}={value!r}," for name, value in stated.items()]
        head = ["from torch.utils.data import DataLoader", "", *comments]
        if own_init is not None:
            head.append(f"# in set_up, also call {own_init}(worker_id)")
        if setup and arguments.get("num_workers"):
            lines.append("    worker_init_fn=set_up,")
        elif setup:
            head.append("set_up(0)  # without workers, this process loads")
        made = "\n".join([*head, "loader = DataLoader(", f"    {source},", *lines, ")"])
        return [sharing_code(), setup, f"{made}\nloader = SharedWorkers(loader)"] if is_shared else [setup, made]

    def _stated(self, name: str, value: Any) -> bool:
        """Whether to state an argument; a value that means "not given" is left out."""
        return isinstance(value, Code) or (
            name in self.arguments and (name not in NEEDS_WORKERS or value != NEEDS_WORKERS[name])
        )


STREAM_ARGUMENTS = {name: check for name, check in TorchLoader.arguments.items() if name != SHARE}
"""Arguments of a `DataLoader` over an iterable dataset."""


class EndlessSampler:
    """An endless sequence of permutations, so trials measure neither the end of an epoch nor a draining queue."""

    def __init__(self, length: int, shuffle: bool, seed: int) -> None:
        self._length, self._shuffle, self._seed = length, shuffle, seed
        self.among: Sequence[int] | None = None  # if set, only these indices are drawn

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[int]:
        import torch

        generator = torch.Generator().manual_seed(self._seed)
        among = range(self._length) if self.among is None else self.among
        while True:
            order = torch.randperm(len(among), generator=generator).tolist() if self._shuffle else range(len(among))
            yield from (among[place] for place in order)


def narrow_sampler(loader: Any, indices: Sequence[int]) -> bool:
    """Restrict a loader built here to these samples; return `False` for a user's own sampler, which stays unchanged."""
    found: Any = getattr(loader.batch_sampler, "sampler", loader.sampler)
    found = getattr(found, "sampler", found)  # the sampler inside one that numbers its draws
    if not isinstance(found, EndlessSampler):
        return False
    found.among = indices
    return True


class EndlessShard:
    """A rank's part of an endless sequence of permutations, divided as torch's `DistributedSampler` does.

    Raises `ValueError` for fewer samples than ranks, because ranks would then train on the same samples.
    """

    def __init__(self, length: int, shuffle: bool, seed: int) -> None:
        from torch.utils.data import DistributedSampler

        samples: Any = range(length)
        self._sampler: DistributedSampler[Any] = DistributedSampler(samples, shuffle=shuffle, seed=seed)
        check_enough(length, "sample", self._sampler.num_replicas)

    def __len__(self) -> int:
        return len(self._sampler)

    def __iter__(self) -> Iterator[int]:
        for epoch in count():
            self._sampler.set_epoch(epoch)
            yield from self._sampler


class TorchBatches(Batches):
    """Batches of a `DataLoader`."""

    @property
    def traced_in(self) -> TracedIn:
        """The `DataLoader` and its workers."""
        return "data_loader"

    @property
    def is_divided(self) -> bool:
        """Whether the loader's sampler divides the samples."""
        from torch.utils.data import DistributedSampler

        sampler = getattr(self.iterable, "sampler", None)
        return isinstance(getattr(sampler, "sampler", sampler), EndlessShard | DistributedSampler)

    @property
    def can_be_stopped(self) -> bool:
        """Whether the loader has no timeout: one would take a stopped worker for a hang."""
        return not getattr(self.iterable, "timeout", 0)

    def close(self, iterator: Iterator[Any] | None = None) -> None:
        """Shut down the workers as torch does, including persistent workers, which the loader keeps alive."""
        persistent = getattr(self.iterable, "_iterator", None)
        if iterator is None:  # "or" would ask an endless iterator for its length
            iterator = persistent
        if iterator is None:
            return
        with suppress(AttributeError):  # an iterator without workers
            iterator._shutdown_workers()  # type: ignore[attr-defined]
        if persistent is iterator:
            self.iterable._iterator = None  # type: ignore[attr-defined]


def check_workers_every(seconds: float) -> None:
    """Detect within `seconds` that a worker of this process has exited; torch checks every five seconds.

    Only an exit with code 0, as by `sys.exit()`, waits for that check. Other deaths raise a signal immediately.
    """
    from torch.utils.data import dataloader

    get = getattr(dataloader._MultiProcessingDataLoaderIter, "_try_get_data", None)
    if get is not None and len(get.__defaults__ or ()) == 1:
        get.__defaults__ = (seconds,)


def build_loader(source: Any, arguments: Mapping[str, Any], *, seed: int) -> Batches:
    """Wrap the result of a target or dataset. In a process group, a map-style dataset is divided among the ranks.

    A `Dataset` gets a `DataLoader` with `arguments`, without those that torch rejects without workers. On a
    `DataLoader`, the arguments are set that can still be changed. Any other iterable is returned unchanged. Raises
    `TypeError` for anything else, and torch's exceptions.
    """
    from torch.utils.data import DataLoader, Dataset, IterableDataset

    if isinstance(source, DataLoader):
        return _no_larger_than_an_epoch(_torch_batches(source, _set_arguments(source, arguments)))
    if isinstance(source, IterableDataset):
        return _wrapped(DataLoader(source, **_accepted_arguments(arguments)), arguments)
    if isinstance(source, Dataset) or _is_map_style(source):
        sampler, per_epoch = endless_sampler(source, arguments, seed)
        batches = _wrapped(DataLoader(source, sampler=sampler, **_accepted_arguments(arguments)), arguments)
        return replace(batches, samples_per_epoch=per_epoch)
    if isinstance(source, Iterable) and not isinstance(source, str | bytes):
        _reject_several(source)
        return Batches(source)
    raise TypeError(f"expected a Dataset or an iterable of batches, got {type(source).__name__}")


def _no_larger_than_an_epoch(found: Batches) -> Batches:
    """Reduce the batch size to the size of an epoch if an epoch of the user's loader is smaller than a batch."""
    if not found.batch_size or not found.samples_per_epoch:
        return found
    return replace(found, batch_size=min(found.batch_size, found.samples_per_epoch))


def _reject_several(source: Iterable[Any]) -> None:
    """Raise `TypeError` for several loaders or datasets in a container, for example for training and validation."""
    from torch.utils.data import DataLoader, Dataset

    parts = source.values() if isinstance(source, dict) else source if isinstance(source, list | tuple) else ()
    found = next((part for part in parts if isinstance(part, DataLoader | Dataset)), None)
    if found is not None:
        raise TypeError(f"expected one loader or dataset, got a {type(source).__name__} with a {type(found).__name__}")


def endless_sampler(source: Any, arguments: Mapping[str, Any], seed: int) -> tuple[Any, int]:
    """Return an endless sampler of a map-style dataset, for this rank in a process group, and its samples per epoch.

    Raises `ValueError` for an empty dataset.
    """
    from loaderbench.loaders.seeded import SeededSamples

    length = len(source)
    if length == 0:
        raise ValueError("the dataset is empty")
    shard = EndlessShard if has_ranks() else EndlessSampler
    sampler: Any = shard(length, bool(arguments.get("shuffle", False)), seed)
    per_epoch = len(sampler)
    if isinstance(source, SeededSamples):  # samples depend on the number of the draw
        sampler = source.numbered(sampler)
    return sampler, per_epoch


def check_samples_by_number(source: Any, loader: str) -> None:
    """Raise `TypeError` for sources that loading threads cannot read: not indexed, or seeded per process."""
    from torch.utils.data import IterableDataset

    from loaderbench.loaders.seeded import SeededSamples

    if isinstance(source, SeededSamples):
        raise TypeError(f"measure.deterministic: threads of loader: {loader} share their random numbers; leave it out")
    if isinstance(source, IterableDataset) or not _is_map_style(source):
        raise TypeError(f"loader: {loader} needs a map-style dataset, got {type(source).__name__}")


def _is_map_style(source: Any) -> bool:
    """Whether a source is map-style. Other libraries' datasets count; a plain list counts as finished batches."""
    is_other = isinstance(source, list | tuple | dict | str | bytes)
    return hasattr(source, "__getitem__") and hasattr(source, "__len__") and not is_other


def _wrapped(loader: DataLoader[Any], arguments: Mapping[str, Any]) -> Batches:
    _apply_worker_options(loader, arguments)
    return _torch_batches(loader, arguments)


def _torch_batches(loader: DataLoader[Any], configured: Iterable[str]) -> Batches:
    prefetched, cycle = loader.num_workers * (loader.prefetch_factor or 0), max(1, loader.num_workers)
    length = _samples_per_epoch(loader)
    return TorchBatches(loader, prefetched, cycle, frozenset(configured), loader.batch_size, length)


def _samples_per_epoch(loader: DataLoader[Any]) -> int | None:
    """How many samples the sampler draws, or else the length of the dataset; `None` for a stream."""
    from torch.utils.data import IterableDataset

    if isinstance(loader.dataset, IterableDataset):
        return None
    sampler = getattr(loader.batch_sampler, "sampler", loader.sampler)
    gives_lists = hasattr(sampler, "batch_size")  # and its length is their number
    for sized in [loader.dataset] if gives_lists else [sampler, loader.dataset]:
        with suppress(Exception):  # from the user's code
            return len(sized)  # type: ignore[arg-type]
    return None


def _set_arguments(loader: DataLoader[Any], arguments: Mapping[str, Any]) -> list[str]:
    """Change a loader of the user before it is iterated; return the names that could be changed."""
    from torch.utils.data import DataLoader

    settable = {*SETTABLE} & inspect.signature(DataLoader.__init__).parameters.keys()  # torch 2.5 has no `in_order`
    changed = {name: value for name, value in arguments.items() if name in settable}
    loader.num_workers = changed.get("num_workers", loader.num_workers)  # the others depend on it
    if not loader.num_workers:
        loader.prefetch_factor, loader.timeout = None, 0
        asks = {name for name, value in NEEDS_WORKERS.items() if arguments.get(name, value) != value}
        changed = {name: value for name, value in arguments.items() if name in {*settable, *NEEDS_WORKERS} - asks}
    for name in changed.keys() & settable:
        if name == "persistent_workers":  # `setattr` rejects it, because workers may run; here no epoch has begun
            vars(loader)[name] = bool(changed[name])
        else:
            setattr(loader, name, changed[name])
    if loader.num_workers and loader.prefetch_factor is None:
        loader.prefetch_factor = PREFETCH  # torch sets this default if workers are given to the constructor
    _apply_worker_options(loader, arguments)
    return [*changed, *(name for name in WORKER_OPTIONS if name in arguments)]


def _apply_worker_options(loader: DataLoader[Any], arguments: Mapping[str, Any]) -> None:
    """Apply the worker options in the workers; without workers, in this process."""
    setup = worker_setup(arguments, loader.worker_init_fn)
    if setup is not None and loader.num_workers:
        loader.worker_init_fn = setup
    elif setup is not None:
        replace(setup, before=None)(0)


def _accepted_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Drop arguments that torch rejects without workers or batches, and `shuffle`, which the sampler replaces."""
    import torch

    without_workers = () if arguments.get("num_workers") else NEEDS_WORKERS
    without_batches = ("drop_last",) if arguments.get("batch_size", 1) is None else ()
    dropped = ("shuffle", SHARE, *WORKER_OPTIONS, *without_workers, *without_batches)
    kept = {name: value for name, value in arguments.items() if name not in dropped}
    known = inspect.signature(torch.utils.data.DataLoader.__init__).parameters.keys()
    if unknown := sorted(kept.keys() - known):
        what = f"unknown argument of the target and of DataLoader (torch {torch.__version__}): {', '.join(unknown)}"
        raise TypeError(what + nearest(unknown[0], known))
    if objects := sorted(name for name in kept.keys() & set(OBJECTS) if isinstance(kept[name], str)):
        do = "let the target take it as a parameter, or return a DataLoader with it"
        raise TypeError(f"{objects[0]} is the name of an object; {do}")
    return kept
