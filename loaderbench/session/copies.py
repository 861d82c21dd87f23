"""The copies in other formats that the trials of a run read: found, or written before the first trial of each."""

from __future__ import annotations

from loaderbench.datasets import Samples, page_cache
from loaderbench.formats import FILES, StoredCopy, copy_as
from loaderbench.loaders import backend_of
from loaderbench.records import Config
from loaderbench.session.listener import Listener
from loaderbench.suite import Suite


class Copies:
    """Those of one run."""

    def __init__(self, suite: Suite, listener: Listener) -> None:
        self._suite, self._listener = suite, listener
        self._found: dict[tuple[str, Samples], StoredCopy] = {}

    def of(self, samples: Samples, config: Config) -> StoredCopy | None:
        """What a configuration reads in place of these files; `None` where it reads the files themselves."""
        name = format_of(config, self._suite)
        if name == FILES:
            return None
        if (name, samples) not in self._found:
            self._listener.doing(f"looking for {len(samples):,} files as {name}")
            copy = copy_as(name, samples, lambda done, total: self._listener.writing(name, done, total))
            if self._suite.measure.cache == "warm":
                page_cache.warm(map(str, copy.files))
            self._found[name, samples] = copy
        return self._found[name, samples]


def format_of(config: Config, suite: Suite) -> str:
    """The format that a configuration reads: the only one of its loader, or that of its dataset."""
    backend = backend_of({**suite.loader, **config})
    if backend.format or backend.decodes:
        return backend.format or FILES
    return suite.dataset.with_axes(config).stored_as
