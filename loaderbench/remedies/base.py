"""What a remedy knows, and how a change that the sweep has measured becomes a recommendation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from loaderbench.analysis.configurations import ratio_of
from loaderbench.analysis.intervals import excludes_one
from loaderbench.records import (
    Best,
    Config,
    Configuration,
    Gain,
    Interval,
    Reasons,
    Recommendation,
    Trial,
    config_label,
)
from loaderbench.remedies.snippets import python_snippet, yaml_snippet


@dataclass(frozen=True)
class Findings:
    """A run as the remedies see it. `loader` are the fixed arguments; `why_no_best` is empty where there is a best."""

    configurations: Sequence[Configuration]
    trials: Sequence[Trial]
    best: Best | None
    baseline: Config
    axes: dict[str, Any]
    collapsed: Reasons = field(default_factory=dict)
    loader: dict[str, Any] = field(default_factory=dict)
    why_no_best: str = ""

    def label(self, config: Config) -> str:
        """Write a configuration by the axes that vary."""
        return config_label({axis: value for axis, value in config.items() if len(self.axes.get(axis, [])) > 1})

    def find(self, config: Config) -> Configuration | None:
        """The configuration as it was measured, or `None`."""
        return next((found for found in self.configurations if found.config == config and found.samples_per_s), None)


class Remedy(Protocol):
    """One entry of the catalogue."""

    @property
    def id(self) -> str:
        """The name of its file."""
        ...

    def recommend(self, findings: Findings) -> Recommendation | None:
        """Say what this run tells of it, or `None` where it has nothing to do with this run."""
        ...


@dataclass(frozen=True)
class MeasuredChange:
    """A change from the baseline that was itself a configuration of the sweep, so that its gain is measured."""

    id: str
    title: str
    changed: Config
    caveat: str | None = None
    already_ok: str = "it made no difference beyond the noise"

    def recommend(self, findings: Findings) -> Recommendation:
        """Compare it with the baseline in paired rounds; open only if the gain's interval excludes 1."""
        change = {axis: value for axis, value in self.changed.items() if findings.baseline.get(axis) != value}
        after, before = findings.find(self.changed), findings.find(findings.baseline)
        ratio = ratio_of(self.changed, findings.baseline, findings.trials)
        if after is None or before is None or ratio is None:
            return not_checked(
                self.id, self.title, "the changed configuration was not measured beside the baseline", change
            )
        gained = excludes_one(ratio) and ratio.est > 1
        return Recommendation(
            id=self.id,
            title=self.title,
            change=change,
            basis="measured",
            gain=Gain("samples_per_s", ratio.est, ratio.lo, ratio.hi),
            status="open" if gained else "already_ok",
            costs=tuple(_costs(before, after)) if gained else (),
            evidence=(_evidence(findings.label(before.config), before), _evidence(findings.label(after.config), after)),
            trials=(*before.trials, *after.trials),
            caveat=self.caveat,
            snippet=python_snippet(self.changed, findings.loader) if gained else None,
            snippet_yaml=yaml_snippet(self.changed) if gained else None,
            reason=None if gained else self.already_ok,
        )


def already_ok(id_: str, title: str, reason: str) -> Recommendation:
    """What the user does already, or need not do."""
    return Recommendation(
        id=id_, title=title, change={}, basis="measured", gain=None, status="already_ok", reason=reason
    )


def not_checked(id_: str, title: str, reason: str, change: Config | None = None) -> Recommendation:
    """What this run could not tell, and why."""
    return Recommendation(
        id=id_, title=title, change=change or {}, basis=None, gain=None, status="not_checked", reason=reason
    )


def _evidence(label: str, found: Configuration) -> str:
    return f"{label}: {_rate(found.samples_per_s)}"


def _rate(interval: Interval | None) -> str:
    if interval is None:
        return "not measured"
    spread = "" if interval.lo is None else f" ({interval.lo:,.0f}\N{EN DASH}{interval.hi:,.0f})"
    return f"{interval.est:,.0f}{spread} samples/s"


def _costs(before: Configuration, after: Configuration) -> list[str]:
    """What the change takes more of than the baseline, as measured."""
    costs = []
    workers = _number(after.config.get("num_workers")) - _number(before.config.get("num_workers"))
    if workers > 0:
        costs.append(f"{workers:.0f} more worker process{'es' if workers > 1 else ''}")
    for name, label in (
        ("gpu_memory_used_bytes", "GPU memory"),
        ("pss_bytes", "host memory"),
        ("shm_peak_bytes", "shared memory"),
    ):
        more = (getattr(after, name) or 0) - (getattr(before, name) or 0)
        if getattr(after, name) is not None and more > 1 << 20:
            costs.append(f"{more / (1 << 20):,.0f} MiB more {label}")
    cpu = (after.cpu_percent_of_allotted or 0) - (before.cpu_percent_of_allotted or 0)
    if cpu >= 5:
        costs.append(f"{cpu:.0f} percentage points more of the allotted CPUs")
    return costs


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
