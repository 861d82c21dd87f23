"""How long each rank of a distributed training waits for the batches of the others, by the clocks of their steps.

A step of ranks that train together ends once all of them have had their batch: at an all-reduce at the latest. A rank
that has its batch early waits there for the last one. The ends of steps also align the clocks of several hosts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from loaderbench.recorder.batches import Numbers
from loaderbench.recorder.steps import StepTimes

FEWEST_STEPS = 10
_TOGETHER = 0.9  # of the steps; the others may be the first after a pause, such as a checkpoint

_TOO_FEW = f"fewer than {FEWEST_STEPS} steps were timed in every rank"
_APART = "the ranks do not wait for one another in every step"


@dataclass(frozen=True)
class RankSteps:
    """A rank's host and its last steps."""

    host: str
    steps: StepTimes


def waits_for_others(ranks: Mapping[int, RankSteps]) -> tuple[dict[int, float], str]:
    """The share of step time by rank, and why there are none where they are not known."""
    known = [one.steps.names for one in ranks.values()]
    common = set[tuple[int, int]].intersection(*known) if len(known) > 1 else set()
    if len(common) < FEWEST_STEPS:
        return {}, _TOO_FEW
    hosts = [one.host for one in ranks.values()]
    asked_s, got_s, ended_s = _aligned(np.stack([one.steps.at(common) for one in ranks.values()]), hosts)
    last_s = got_s.max(axis=0)
    if (ended_s.min(axis=0) >= last_s).mean() < _TOGETHER:
        return {}, _APART
    longest_s = np.take_along_axis(got_s - asked_s, got_s.argmax(axis=0)[None], axis=0)
    waits_s = np.minimum(last_s - got_s, longest_s).clip(0).sum(axis=1)
    shares = waits_s / (ended_s - asked_s).sum(axis=1)
    return dict(zip(ranks, shares.tolist(), strict=True)), ""


def _aligned(times_s: Numbers, hosts: Sequence[str]) -> tuple[Numbers, Numbers, Numbers]:
    """Three arrays of shape (ranks, steps), by the clock of the first host; from one of shape (ranks, steps, 3)."""
    ends_s = {host: times_s[[one == host for one in hosts], :, 2].mean(axis=0) for host in dict.fromkeys(hosts)}
    ahead_s = [float(np.median(ends_s[host] - ends_s[hosts[0]])) for host in hosts]
    asked_s, got_s, ended_s = np.moveaxis(times_s - np.array(ahead_s)[:, None, None], 2, 0)
    return asked_s, got_s, ended_s
