"""The loader backends that batches come from. Each backend is one module and one line in `LOADER_BACKENDS`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from loaderbench.errors import MissingError
from loaderbench.formats import FORMATS, check_formats
from loaderbench.loaders.backend import Batches, Code, LoaderBackend, Prefetch
from loaderbench.loaders.dali_loader import Dali
from loaderbench.loaders.grain_loader import Grain
from loaderbench.loaders.litdata_loader import LitdataLoader
from loaderbench.loaders.spdl_loader import Spdl
from loaderbench.loaders.streaming_loader import Streaming
from loaderbench.loaders.tf_data import TfData
from loaderbench.loaders.tf_queue import TfQueue
from loaderbench.loaders.tf_records import TfRecords
from loaderbench.loaders.threads import Threads
from loaderbench.loaders.torch_loader import TorchLoader
from loaderbench.loaders.webdataset_loader import WebDataset
from loaderbench.options import Check, one_of

__all__ = [
    "AUTO",
    "AXIS",
    "DEFAULT_BACKEND",
    "LOADER_BACKENDS",
    "Batches",
    "Code",
    "LoaderBackend",
    "Prefetch",
    "backend_of",
    "backends_of",
    "check_installed",
    "loader_axes",
    "own_arguments",
    "prefetch_of",
    "worker_count",
]

LOADER_BACKENDS: dict[str, LoaderBackend] = {
    "torch": TorchLoader(),
    "threads": Threads(),
    "spdl": Spdl(),
    "dali": Dali(),
    "tf_data": TfData(),
    "tf_queue": TfQueue(),
    "tf_records": TfRecords(),
    "webdataset": WebDataset(),
    "litdata": LitdataLoader(),
    "streaming": Streaming(),
    "grain": Grain(),
}

AXIS, DEFAULT_BACKEND = "loader", next(iter(LOADER_BACKENDS))
"""The argument and axis that names the backend, and its default."""


AUTO = "auto"
"""In place of a list of values of the axis `loader`: all backends whose libraries are installed."""


def backend_of(arguments: Mapping[str, Any]) -> LoaderBackend:
    """The backend that these arguments name; the default backend for an unknown name."""
    return LOADER_BACKENDS.get(str(arguments.get(AXIS, DEFAULT_BACKEND)), LOADER_BACKENDS[DEFAULT_BACKEND])


def prefetch_of(loader: Mapping[str, Any], config: Mapping[str, Any]) -> Prefetch:
    """How a configuration prefetches with the suite's fixed `loader` arguments."""
    arguments = {**loader, **config}
    return backend_of(arguments).prefetch(arguments)


COUNT_AXES = ("num_workers", "threads")
"""Axes that set how many workers or threads load in parallel."""


def worker_count(config: Mapping[str, Any], loader: Mapping[str, Any]) -> int | None:
    """The worker count of a configuration with the suite's fixed `loader` arguments; `None` if neither sets it."""
    return prefetch_of(loader, config).workers


def backends_of(loader: Mapping[str, Any], sweep: Mapping[str, Any]) -> dict[str, LoaderBackend]:
    """The backends of a suite by name, in the order of its axis, without unknown names."""
    named = sweep.get(AXIS, loader.get(AXIS, DEFAULT_BACKEND))
    if named == AUTO:
        return {name: backend for name, backend in LOADER_BACKENDS.items() if _can_run(backend)}
    names = [str(name) for name in (named if isinstance(named, list) else [named])]
    return {name: LOADER_BACKENDS[name] for name in names if name in LOADER_BACKENDS}


def _can_run(backend: LoaderBackend) -> bool:
    """Whether the backend's library is installed, and that of its format if it reads only one."""
    return backend.is_installed() and (not backend.format or FORMATS[backend.format].is_installed())


def check_installed(backends: Mapping[str, LoaderBackend]) -> None:
    """Raise `MissingError` for the first backend without its library, since all of its trials would fail.

    The library of a backend's only format is checked as well.
    """
    for name, backend in backends.items():
        if not backend.is_installed():
            raise MissingError(f"loader {name}: {backend.needs} is not installed; run `{backend.install}`")
    check_formats(backend.format for backend in backends.values())


def loader_axes(backends: Iterable[LoaderBackend]) -> dict[str, Check]:
    """The arguments that `loader` and `sweep` accept for these backends.

    An argument of one backend is accepted even if another backend of the suite does not know it.
    """
    checks: dict[str, list[Check]] = {}
    for backend in backends:
        for name, check in backend.axes.items():
            checks.setdefault(name, []).append(check)
    known = one_of(*LOADER_BACKENDS)
    return {**{name: found[0] if len(found) == 1 else _any_of(found) for name, found in checks.items()}, AXIS: known}


def _any_of(checks: list[Check]) -> Check:
    """Accept a value that any check accepts; otherwise report the first check's message."""

    def check(value: Any) -> str | None:
        messages = [each(value) for each in checks]
        return None if None in messages else messages[0]

    return check


def own_arguments(arguments: Mapping[str, Any], backends: Iterable[LoaderBackend]) -> dict[str, Any]:
    """The arguments of the named backend, without its name and without arguments of the suite's other backends."""
    own = backend_of(arguments)
    foreign = {name for backend in backends for name in backend.axes} - own.axes.keys()
    return {name: value for name, value in arguments.items() if name != AXIS and name not in foreign}
