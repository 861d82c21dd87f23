"""Which configurations do the same work on the same data, by the axes of ranks and of the dataset."""

from __future__ import annotations

from collections.abc import Mapping

from loaderbench.datasets import DatasetKind, saved_dataset
from loaderbench.ranks import RANKS
from loaderbench.records import Config, Measured
from loaderbench.statistics.configurations import is_alternative


def axes_of_work(dataset: DatasetKind | None) -> tuple[str, ...]:
    """Axes that say how much work is done, which is not the loader's choice: ranks, and samples of the dataset."""
    return (RANKS, *(() if dataset is None else dataset.amount_axes))


def traits_with_same_data(measured: Measured, config: Config) -> Mapping[str, str]:
    """The traits seen in the dataset of a configuration, or of another one with the same data."""
    dataset = saved_dataset(measured.section("dataset"))
    alike = () if dataset is None else tuple(dataset.data_axes)
    same = (trial for trial in measured.sweep if is_alternative(trial.config, config, alike))
    return next((trial.dataset_traits for trial in same if trial.dataset_traits), {})
