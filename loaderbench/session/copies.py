"""The copies in other formats and the object-store files that a run's trials read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from loaderbench.datasets import DatasetKind, Samples, page_cache
from loaderbench.formats import FILES, StoredCopy, copy_as
from loaderbench.loaders import backend_of
from loaderbench.object_store import check_client, check_copy
from loaderbench.records import Config
from loaderbench.session.listener import Listener
from loaderbench.suite import LoadedSuite, Suite


class Copies:
    """Finds or writes the dataset copies of one run; each copy is prepared once."""

    def __init__(self, suite: Suite, listener: Listener) -> None:
        self._suite, self._listener = suite, listener
        self._found: dict[tuple[str, Samples, str | None], StoredCopy] = {}

    def of(self, samples: Samples, config: Config) -> StoredCopy | None:
        """The copy that a configuration reads instead of these files; `None` if it reads the files themselves.

        Raises `MissingError` if the copy cannot be written, or if the object store does not hold it.
        """
        name, url = format_of(config, self._suite), self._suite.dataset.with_axes(config).store
        if name == FILES:
            return None
        store = None if url is None else f"{url}/{name}"
        if (name, samples, store) not in self._found:
            self._found[name, samples, store] = self._copy(name, samples, store)
        return self._found[name, samples, store]

    def _copy(self, name: str, samples: Samples, store: str | None) -> StoredCopy:
        self._listener.doing(f"looking for {len(samples):,} files as {name}")
        copy = copy_as(name, samples, lambda done, total: self._listener.writing(name, done, total))
        if store is None:
            if self._suite.measure.cache == "warm":
                page_cache.warm(map(str, copy.files))
            return copy
        self._listener.doing(f"looking for the same files in {store}")
        check_copy(store, copy.folder, [copy.files[0], copy.files[-1]])
        return replace(copy, store=store)


def check_stores(
    loaded: LoadedSuite, configs: Iterable[Config], samples_of: Callable[[DatasetKind], Samples], listener: Listener
) -> None:
    """Read one file from each object store that these configurations read image files from.

    Raises `MissingError` if the read fails or the store's client library is not installed.
    """
    checked: set[tuple[object, ...]] = set()
    for config in configs:
        dataset = loaded.suite.dataset.with_axes(config)
        key = (dataset.store, *dataset.choice_of_data)
        if dataset.store is None or key in checked:
            continue
        check_client(dataset.store)
        if format_of(config, loaded.suite) == FILES:
            listener.doing(f"reading one file from {dataset.store}")
            dataset.check_store(samples_of(dataset), loaded.folder)
            checked.add(key)


def format_of(config: Config, suite: Suite) -> str:
    """The format that a configuration reads: its loader's only format, or else that of its dataset."""
    backend = backend_of({**suite.loader, **config})
    if backend.format or backend.decodes:
        return backend.format or FILES
    return suite.dataset.with_axes(config).stored_as
