"""What the trials of a run read: copies in other formats are found or written, and object stores asked for a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from loaderbench.datasets import Samples, page_cache
from loaderbench.formats import FILES, StoredCopy, copy_as
from loaderbench.loaders import backend_of
from loaderbench.object_store import check_copy
from loaderbench.records import Config
from loaderbench.session.listener import Listener
from loaderbench.suite import Suite


class Copies:
    """Those of one run."""

    def __init__(self, suite: Suite, folder: Path, listener: Listener) -> None:
        self._suite, self._folder, self._listener = suite, folder, listener
        self._checked: set[str] = set()
        self._found: dict[tuple[str, Samples, str | None], StoredCopy] = {}

    def of(self, samples: Samples, config: Config) -> StoredCopy | None:
        """What a configuration reads in place of these files; `None` where it reads the files themselves.

        Raises `MissingError` where it cannot be written, and where an object store does not have what is to be read.
        """
        dataset, name = self._suite.dataset.with_axes(config), format_of(config, self._suite)
        url = dataset.store
        if name == FILES:
            if url is not None and url not in self._checked:
                self._listener.doing(f"reading one file from {url}")
                dataset.check_store(samples, self._folder)
                self._checked.add(url)
            return None
        store = None if url is None else f"{url.rstrip('/')}/{name}"
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


def format_of(config: Config, suite: Suite) -> str:
    """The format that a configuration reads: the only one of its loader, or that of its dataset."""
    backend = backend_of({**suite.loader, **config})
    if backend.format or backend.decodes:
        return backend.format or FILES
    return suite.dataset.with_axes(config).stored_as
