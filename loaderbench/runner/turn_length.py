"""How long a trial has to go on before it is stopped and another takes its turn."""

from __future__ import annotations

import math
from collections.abc import Mapping

from loaderbench.records import StageCost, WorkerStates

SHORTEST_TURN_S = 0.05
LONGEST_TURN_S = 1.0
GIVEN_SHARE = 0.005
"""Of a turn, at most, that may be won by what goes on while the trial is stopped: a storage that answers, a sleep."""


def turn_seconds(stages: Mapping[str, StageCost] | None, loads: WorkerStates | None) -> float | None:
    """Seconds of a turn, from what a sample costs; `None` where they are not known, or a turn would take too long.

    A sample of `wall` seconds that waits `w` of them for something else than a CPU is met waiting with a chance of
    `w / wall`, and half of its wait is then over for nothing, once a turn. `loads` are the states of those who load.
    """
    costs = (stages or {}).values()
    cpu_s, wall_s = math.fsum(cost.cpu_s or 0.0 for cost in costs), math.fsum(cost.wall_s or 0.0 for cost in costs)
    if not wall_s or loads is None or not loads.on_cpu_share:
        return None
    waits_s = max(0.0, wall_s - cpu_s * (1 + loads.run_queue_share / loads.on_cpu_share))
    seconds = max(SHORTEST_TURN_S, waits_s * waits_s / (2 * wall_s) / GIVEN_SHARE)
    return seconds if seconds <= LONGEST_TURN_S else None
