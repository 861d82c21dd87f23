"""Before loaders are compared: whether they give the same batches."""

from __future__ import annotations

from collections.abc import Sequence

from loaderbench.loaders import AXIS, DEFAULT_BACKEND
from loaderbench.plan import Plan
from loaderbench.records import Config, Parity
from loaderbench.session.measuring import TrialMeasurer


def compare_batches(plan: Plan, measuring: TrialMeasurer) -> tuple[Parity, ...]:
    """Hold each loader of the sweep against torch's, or against the first where that is not swept."""
    names = [str(name) for name in plan.axes.get(AXIS, ())]
    if len(names) < 2:
        return ()
    against = DEFAULT_BACKEND if DEFAULT_BACKEND in names else names[0]
    first = {name: next(config for config in plan.configurations if config[AXIS] == name) for name in names}
    return tuple(measuring.parity(first[name], first[against]) for name in names if name != against)


def why_refused(config: Config, parity: Sequence[Parity]) -> str | None:
    """Why a configuration is not measured: its loader gives other batches."""
    for found in parity:
        if found.refused and config.get(AXIS) == found.loader:
            return f"batches of {found.loader} differ from those of {found.against}: {found.refused}"
    return None
