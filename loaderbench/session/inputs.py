"""What the trials read, found or made before anything is measured."""

from __future__ import annotations

from loaderbench.datasets import Inputs
from loaderbench.records import DatasetSummary
from loaderbench.session.listener import Listener
from loaderbench.suite import LoadedSuite

_SHOWN = 3  # of the files that were left out, in a sentence


def prepare_inputs(loaded: LoadedSuite, listener: Listener) -> Inputs:
    """Find or make the files, and read them once where the suite measures a warm page cache."""
    suite = loaded.suite
    inputs = suite.dataset.prepare(suite.sweep, loaded.folder, listener)
    if suite.measure.cache == "warm" and inputs.samples:
        count = len(inputs.samples)
        listener.doing(f"reading {count:,} file{'s' if count > 1 else ''} once, for a warm page cache")
        suite.dataset.warm(path for path, _ in inputs.samples)
    return inputs


def note_left_out(found: DatasetSummary) -> list[str]:
    """What a reader of the run is told of files that cannot be decoded; nothing where none was left out."""
    if not found.bad_files:
        return []
    files = f"{found.bad_files:,} file{'' if found.bad_files == 1 else 's'}"
    more = f"; and {found.bad_files - _SHOWN:,} more" if found.bad_files > _SHOWN else ""
    return [f"left out {files} that cannot be decoded: {'; '.join(found.bad_images[:_SHOWN])}{more}"]
