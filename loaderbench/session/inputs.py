"""The files that a run's trials read: found, generated and checked before anything is measured."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from loaderbench.datasets import Ask, DatasetKind, Inputs, Samples, page_cache
from loaderbench.errors import MissingError
from loaderbench.loaders import backends_of, check_installed
from loaderbench.plan import rank_counts
from loaderbench.records import DatasetSummary, Reasons
from loaderbench.records.words import count
from loaderbench.session.listener import Listener
from loaderbench.suite import LoadedSuite, Suite

_MAX_LISTED = 3  # maximum number of skipped files that a note lists


@dataclass(frozen=True)
class RunInputs:
    """The files for each choice of data that a suite sweeps over, such as several values of `root`.

    `of_choice` maps `DatasetKind.choice_of_data` to the files.
    """

    of_choice: Mapping[tuple[Any, ...], Inputs]

    def samples(self, dataset: DatasetKind) -> Samples:
        """The files that trials with this dataset read; empty if unknown."""
        return self.of_choice[dataset.choice_of_data].samples

    @property
    def summary(self) -> DatasetSummary:
        """A summary of all choices. A value that differs between them is `None`, with the reason."""
        summaries = [found.summary for found in self.of_choice.values()]
        return summaries[0] if len(summaries) == 1 else _together(summaries)


def _together(summaries: Collection[DatasetSummary]) -> DatasetSummary:
    common, reasons = {}, Reasons()
    for name in ("files", "classes", "total_files", "bad_files", "root"):
        values = {getattr(one, name) for one in summaries}
        common[name] = values.pop() if len(values) == 1 else None
        if common[name] is None:
            known = (one.not_measured[name] for one in summaries if name in one.not_measured)
            reasons[name] = "differs between the values of an axis" if values else next(known, "unknown")
    images = tuple(f"{one.description}: {image}" for one in summaries for image in one.bad_images)
    described = _joined(one.description for one in summaries)
    return DatasetSummary(described, **common, bad_images=images, not_measured=reasons)


def _joined(descriptions: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(descriptions))


def choices_of_data(suite: Suite) -> list[DatasetKind]:
    """The suite's dataset with each combination of the values of its `data_axes`."""
    dataset, axes = suite.dataset, [*suite.dataset.data_axes]
    found = [
        dataset.with_axes(dict(zip(axes, values, strict=True))) for values in product(*map(suite.option_values, axes))
    ]
    return list({one.choice_of_data: one for one in found}.values())


def described(loaded: LoadedSuite) -> str:
    """What the trials will read, without reading or generating it. Raises `MissingError` if data is missing."""
    datasets = choices_of_data(loaded.suite)
    return _joined(dataset.describe(loaded.suite.options, loaded.folder) for dataset in datasets)


def prepare_inputs(loaded: LoadedSuite, listener: Listener) -> RunInputs:
    """Find or generate the files, and read them once if the suite measures with a warm page cache."""
    check_installed(backends_of(loaded.suite.loader, loaded.suite.sweep) | backends_of(loaded.suite.baseline, {}))
    found = {one.choice_of_data: _prepare(one, loaded, listener) for one in choices_of_data(loaded.suite)}
    return RunInputs(found)


def _prepare(dataset: DatasetKind, loaded: LoadedSuite, listener: Listener) -> Inputs:
    inputs = dataset.prepare(loaded.suite.options, loaded.folder, listener)
    if loaded.suite.measure.cache == "warm" and inputs.samples:
        listener.doing(f"warming the page cache: reading {count(len(inputs.samples), 'file')}")
        page_cache.warm(path for path, _ in inputs.samples)
    return inputs


def without_bad(inputs: RunInputs, suite: Suite, ask: Ask, listener: Listener) -> RunInputs:
    """Exclude files that cannot be decoded, if the suite asks for it. Raises `MissingError` if none is left."""
    datasets = {one.choice_of_data: one for one in choices_of_data(suite)}
    return RunInputs(
        {
            choice: datasets[choice].without_bad(found, suite.options, ask, listener)
            for choice, found in inputs.of_choice.items()
        }
    )


def check_samples(loaded: LoadedSuite, inputs: RunInputs) -> None:
    """Raise `MissingError` if a rank would have no samples; only possible when the number of files is known."""
    ranks = max(rank_counts(loaded.suite))
    for files in map(len, (found.samples for found in inputs.of_choice.values())):
        if 0 < files < ranks:
            raise MissingError(f"sweep.ranks: {ranks} ranks, but only {files} files; use more files, or fewer ranks")


def notes_left_out(inputs: RunInputs) -> list[str]:
    """A note for each choice of data with files that cannot be decoded; each names its data if there are several."""
    found = [one.summary for one in inputs.of_choice.values()]
    several = len(found) > 1
    return [note_left_out(one, f" of {one.description}" if several else "") for one in found if one.bad_files]


def note_left_out(found: DatasetSummary, of_which: str = "") -> str:
    """The note on files that cannot be decoded."""
    bad, listed = found.bad_files or 0, "; ".join(found.bad_images[:_MAX_LISTED])
    more = f"; and {bad - _MAX_LISTED:,} more" if bad > _MAX_LISTED else ""
    return f"skipped {count(bad, 'file')}{of_which} that cannot be decoded: {listed}{more}"
