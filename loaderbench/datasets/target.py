"""The dataset kind `target`: a dataset or loader from the user's code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from loaderbench.datasets.kind import Built, DatasetKind, DatasetOrder, Inputs, PrepareListener
from loaderbench.options import Check, TargetName, target_name
from loaderbench.records import DatasetSummary
from loaderbench.targets import call_target, find_target, keywords_of


class Target(DatasetKind):
    """Your own code: a callable that returns a `Dataset`, a loader or any iterable of batches."""

    data_axes: ClassVar[Mapping[str, Check]] = {"target": target_name}
    needed: ClassVar[tuple[str, ...]] = ("target",)
    takes_any_axis: ClassVar[bool] = True
    texts: ClassVar[tuple[str, ...]] = ("target",)
    why_no_files: ClassVar[str] = "unknown which files a target reads, so the page cache cannot be set"

    kind: Literal["target"]
    target: TargetName | None = None
    args: dict[str, Any] = {}

    def describe(self, sweep: Mapping[str, Any], folder: Path) -> str:
        """Name the target."""
        return f"target {self.target}"

    def prepare(self, sweep: Mapping[str, Any], folder: Path, listener: PrepareListener) -> Inputs:
        """Return no files: a target is unknown before a trial calls it."""
        reasons = dict.fromkeys(("files", "classes", "total_files", "bad_files", "root"), "unknown for a target")
        return Inputs((), DatasetSummary(self.describe(sweep, folder), not_measured=reasons))

    def targets(self, sweep: Mapping[str, Any]) -> list[str]:
        """The target's name, or all names if it is an axis."""
        named = sweep.get("target", self.target)
        return named if isinstance(named, list) else [str(named)]

    def build(self, order: DatasetOrder) -> Built:
        """Call the target with its arguments and with the axes that it has parameters for."""
        target = self.with_axes(order.arguments).target
        arguments = {name: value for name, value in order.arguments.items() if name not in self.data_axes}
        source, taken = call_target(find_target(str(target), order.folder), self.args, arguments)
        return Built(source, arguments, frozenset(taken))

    def keywords(self, order: DatasetOrder) -> frozenset[str]:
        """The keyword arguments of the target."""
        return keywords_of(find_target(str(self.with_axes(order.arguments).target), order.folder))
