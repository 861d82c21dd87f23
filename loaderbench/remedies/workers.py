"""Shared logic of the three fixes for the worker count: the sweep's best count compared with the baseline's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from loaderbench.diagnosis.facts import Facts
from loaderbench.loaders import COUNT_AXES, backend_of
from loaderbench.loaders.torch_loader import NEEDS_WORKERS
from loaderbench.records import Config, Recommendation
from loaderbench.remedies.base import MeasuredChange, already_ok, not_checked
from loaderbench.remedies.findings import Diagnosis, Findings
from loaderbench.remedies.wording import argument

MOST_WORKERS = 32
RAM_OF_PROCESSES = ("RAM for each worker process",)

_ONE_VALUE = "Not checked: one value swept; add -P {axis}={values}"


@dataclass(frozen=True)
class WorkerRemedy:
    """A fix that triggers when the change from the baseline's worker count to the best count `fits`.

    `about` says whether the fix concerns the baseline's count. `general` is the title if no count is advised. Both
    titles contain `{axis}`, the axis of the baseline's loader.
    """

    id: str
    title: str
    general: str
    fits: Callable[[int, int], bool]
    about: Callable[[int], bool]
    cheaper: bool = False

    def recommend(self, findings: Findings) -> Recommendation | None:
        """Recommend changing only the worker count, to that of the best configuration."""
        axis = swept_count_axis(findings)
        now, general = findings.baseline.get(axis), self.general.format(axis=axis)
        if not isinstance(now, int) or not self.about(now):
            return None
        if len(findings.values(axis)) == 1:
            values = "0,2,4" if axis == "num_workers" else "1,2,4"
            return not_checked(self.id, general, _ONE_VALUE.format(axis=axis, values=values))
        if findings.best is None:
            return not_checked(self.id, general, findings.why_no_best)
        best = findings.best.config.get(axis)
        if not isinstance(best, int):
            return not_checked(self.id, general, f"Not checked: the best config's loader has no {axis} argument")
        if not self.fits(now, best):
            return already_ok(self.id, general, _why_fine(axis, now, best))
        changed = with_workers(findings.baseline, findings.best.config, axis)
        title = self.title.format(axis=axis, count=best)
        return MeasuredChange(self.id, title, changed, cheaper=self.cheaper).recommend(findings)


def swept_count_axis(findings: Findings) -> str:
    """The axis that sets the worker or thread count of the baseline's loader; of two, the only one that was swept."""
    arguments = {**findings.loader, **findings.baseline}
    backend = backend_of(arguments)
    swept = [axis for axis in COUNT_AXES if axis in backend.axes and len(findings.values(axis)) > 1]
    return swept[0] if len(swept) == 1 else next(iter(backend.loading_in(1, arguments)))


def loading_in(found: Diagnosis, workers: int) -> Config:
    """The change that sets the diagnosed loader to this many workers or threads."""
    arguments = {**found.loader, **found.config}
    return backend_of(arguments).loading_in(workers, arguments)


def costs_of_workers(found: Diagnosis, workers: int) -> tuple[str, ...]:
    """The costs of more workers; threads share the memory of their process."""
    return RAM_OF_PROCESSES if "num_workers" in loading_in(found, workers) else ()


def workers_that_hide(facts: Facts) -> int:
    """Enough workers to hide storage latency: four times as many, within the limits of a machine."""
    return min(MOST_WORKERS, max(4 * facts.workers, 4 * int(facts.cpus / facts.ranks)))


def with_workers(baseline: Config, best: Config, axis: str) -> Config:
    """The baseline with the best configuration's worker count on this axis.

    If either count is zero, arguments that only workers take are copied too, since the baseline's are not on the grid.
    """
    changed = {**baseline, axis: best.get(axis)}
    if axis == "num_workers" and 0 in (baseline.get(axis), best.get(axis)):
        changed |= {axis: value for axis, value in best.items() if axis in NEEDS_WORKERS}
    return changed


def _why_fine(axis: str, now: int, best: int) -> str:
    if best == now:
        return f"{argument(axis, now)} is already set"
    return f"Best config has {'fewer' if best < now else 'more'} workers: {best}"
