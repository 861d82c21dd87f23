"""A target that returns an iterable of its own: the program that calls it, and which arguments it takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from loaderbench.datasets import Target, saved_dataset
from loaderbench.loaders import AXIS
from loaderbench.ranks import RANKS, rank_count
from loaderbench.records import Config, Measured
from loaderbench.statistics.configurations import is_alternative
from loaderbench.targets import ANY_KEYWORD


@dataclass(frozen=True)
class TargetCall:
    """The call of a target that returns neither a `Dataset` nor a `DataLoader`.

    Fields:
        target: Its name, as `package.module:name`.
        args: Its arguments in the suite.
        returned: The class of the iterable.
        keywords: Names of the arguments that it takes; `None` if it takes any.
    """

    target: str
    args: Mapping[str, Any]
    returned: str
    keywords: frozenset[str] | None

    def refused(self, names: Iterable[str]) -> list[str]:
        """The names of arguments that the target does not take."""
        return [name for name in names if self.keywords is not None and name not in self.keywords]

    def why_refused(self, names: Iterable[str]) -> str:
        """Why the fix cannot be tried, and what to change in the user's code."""
        called = self.target.partition(":")[2]
        return f"Not measured: {called} takes no {', '.join(self.refused(names))}; set it in your {self.returned}"

    def program(self, arguments: Mapping[str, Any]) -> str:
        """Code that creates `loader` with these arguments."""
        module, _, name = self.target.partition(":")
        apart = {AXIS, RANKS, *Target.data_axes}
        own = {one: value for one, value in arguments.items() if one not in apart and not self.refused([one])}
        lines = [f"    {one}={value!r}," for one, value in {**self.args, **own}.items()]
        ranks = rank_count(arguments)
        note = [f"# in each of {ranks} ranks, after init_process_group"] if ranks is not None and ranks > 1 else []
        return "\n".join([f"import {module}", "", *note, f"loader = {module}.{name}(", *lines, ")", ""])


def target_call(measured: Measured, config: Config) -> TargetCall | None:
    """The call that returned the batches of a configuration; `None` if it returned a `Dataset` or `DataLoader`."""
    section, traits = measured.section("dataset"), traits_with_same_data(measured, config)
    if not isinstance(saved_dataset(section), Target) or "iterable" not in traits:
        return None
    keywords = traits.get("keywords", ANY_KEYWORD)
    taken = None if keywords == ANY_KEYWORD else frozenset(filter(None, keywords.split(", ")))
    args = section.get("args") or {}
    return TargetCall(str(config.get("target", section.get("target"))), args, traits["iterable"], taken)


def traits_with_same_data(measured: Measured, config: Config) -> Mapping[str, str]:
    """The traits seen in the dataset of a configuration, or of another one with the same data."""
    dataset = saved_dataset(measured.section("dataset"))
    alike = () if dataset is None else tuple(dataset.data_axes)
    same = (trial for trial in measured.sweep if is_alternative(trial.config, config, alike))
    return next((trial.dataset_traits for trial in same if trial.dataset_traits), {})
