"""The pipeline of one configuration: the samples/s that each part allows, how its time divides, and the bottleneck.

The limits are those of `operational.py`. Stages in one process have no separate limits: read, decode, transform and
collate share the workers' time; the host-to-device copy and the step share the loop's. Storage is the exception: its
limit is what the workers could read if they did nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from loaderbench.consumers import consumer_kind
from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.gathering import gather
from loaderbench.diagnosis.operational import Bounds, at_work_s, operational_bounds
from loaderbench.diagnosis.ranking import find_subject
from loaderbench.diagnosis.thresholds import CONFLICT
from loaderbench.records import Config, Limit, Reasons, RunRecord, Trial, Verdict
from loaderbench.records.words import stage_place

PartName = Literal["storage", "workers", "cpus", "ipc", "step"]

READ, COPY, REST = "read", "copy", "step"
"""Stages of a part that no tracer names."""

EQUAL = 1.05
"""Limits within this ratio are equally narrow: traced times vary this much between rounds."""

EXPLAINED = 0.8
"""Minimum share of the narrowest limit at which the limit explains the throughput."""

_STORAGE: tuple[Limit, ...] = ("storage_latency", "storage_bandwidth")
_NOT_TIMED = "reading is not timed separately"


@dataclass(frozen=True)
class StageShare:
    """A stage of a part, and its share (0 to 1) of the part's time."""

    stage: str
    share: float


@dataclass(frozen=True, kw_only=True)
class PipelinePart:
    """A part of the pipeline. `samples_per_s` is its limit if nothing else limits it; `None` with a `reason`."""

    name: PartName
    samples_per_s: float | None
    stages: tuple[StageShare, ...] = ()
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """The parts that a sample passes through, in order, in the verdict's configuration.

    `delivered` is the measured throughput and `target` the training step's rate, both in samples/s; `given` means that
    the target was given, not measured. `bottleneck` and `stage` are the verdict's, `None` if it names none. A
    user-defined stage has the user's name; the copy of a transfer-bound loop is `COPY`. `reads_inside` is the verdict's
    stage that files are read in, whose blocked time counts as reading. `in_turn`: one process alternates between
    loading and training. `left_out` says why a part is missing.
    """

    config: Config
    workers: int
    cpus: float
    is_loader: bool
    delivered: float
    parts: tuple[PipelinePart, ...]
    target: float | None = None
    given: bool = False
    bottleneck: PartName | None = None
    stage: str | None = None
    limit: Limit | None = None
    reads_inside: str | None = None
    in_turn: bool = False
    left_out: Reasons = field(default_factory=dict)

    def rate(self, name: PartName | None) -> float | None:
        """The limit of a part; `None` if it is unknown or missing."""
        return next((part.samples_per_s for part in self.parts if part.name == name), None)

    @property
    def narrowest(self) -> PartName | None:
        """The part with the lowest limit; `None` if no limit is known."""
        known = [(part.samples_per_s, part.name) for part in self.parts if part.samples_per_s is not None]
        return min(known)[1] if known else None

    @property
    def limits_explain_it(self) -> bool:
        """Whether the bottleneck has the lowest limit, and throughput comes close to it.

        Without a bottleneck, whether throughput comes close to the lowest limit.
        """
        lowest = self.rate(self.narrowest)
        if lowest is None:
            return True
        own = lowest if self.bottleneck is None else self.rate(self.bottleneck)
        return own is None or (own <= EQUAL * lowest and not self.slower_than_limits)

    @property
    def slower_than_limits(self) -> bool:
        """Whether throughput is well below the lowest limit."""
        lowest = self.rate(self.narrowest)
        return lowest is not None and self.delivered < EXPLAINED * lowest

    @property
    def exceeds_limits(self) -> bool:
        """Whether throughput is higher than the traced times allow."""
        lowest = self.rate(self.narrowest)
        return lowest is not None and self.delivered > CONFLICT * lowest


def describe_pipeline(run: RunRecord) -> Pipeline | None:
    """The pipeline of the verdict's configuration; `None` if nothing was measured."""
    found = find_subject(run.best, run.configurations)
    if found is None or found.samples_per_s is None:
        return None
    trials = [trial for trial in run.sweep if trial.config == found.config and trial.status == "completed"]
    facts = gather(trials, run.environment)
    if facts is None:
        return None
    kind, bounds = consumer_kind(run.consumer), operational_bounds(facts)
    inside = run.verdict.read_inside
    reading_s = _reading_s(facts, inside)
    copied, no_copy = _copy_share(run, facts)
    parts = (
        _storage(facts, reading_s),
        _workers(facts, bounds, trials, inside),
        PipelinePart(name="cpus", samples_per_s=bounds.cpus) if bounds.cpus else None,
        _ipc(facts, bounds, trials),
        _step(run, copied) if kind.consumes else None,
    )
    left_out = {
        "storage": None if parts[0] else (_NOT_TIMED if facts.wall_s else "reading was not measured"),
        "cpus": None if parts[2] else "CPU time was not measured",
        "ipc": None if facts.workers else "no workers",
        "copy": None if copied else no_copy,
        "step": None if kind.consumes else "consumer: none",
    }
    return Pipeline(
        config=found.config,
        workers=facts.workers,
        cpus=facts.cpus,
        is_loader=facts.is_loader,
        delivered=found.samples_per_s.est,
        parts=tuple(part for part in parts if part),
        target=run.ceiling.samples_per_s if run.ceiling and kind.consumes else None,
        given=kind.capped,
        bottleneck=_bottleneck(run.verdict, facts, bounds),
        stage=COPY if run.verdict.bound == "transfer" else run.verdict.work or run.verdict.stage,
        limit=run.verdict.limit,
        reads_inside=inside,
        in_turn=facts.is_loader and not facts.workers and kind.consumes and not kind.capped,
        left_out={name: why for name, why in left_out.items() if why},
    )


def _reading_s(facts: Facts, inside: str | None) -> float | None:
    """Seconds of reading per sample, including those `inside` another stage; `None` if unknown."""
    return at_work_s(facts, READ) + (_blocked_s(facts, inside) if inside else 0.0) or None


def _blocked_s(facts: Facts, stage: str) -> float:
    return max(0.0, at_work_s(facts, stage) - facts.cpu_s.get(stage, 0.0))


def _storage(facts: Facts, reading_s: float | None) -> PipelinePart | None:
    if not reading_s:
        return None
    return PipelinePart(name="storage", samples_per_s=max(1, facts.workers) * facts.ranks_of_rate / reading_s)


def _workers(facts: Facts, bounds: Bounds, trials: list[Trial], inside: str | None) -> PipelinePart:
    rate = bounds.workers
    why = None if rate else _reason(trials, "stages", "nothing was measured inside the loader")
    shares = _shares(facts, inside)
    return PipelinePart(name="workers", samples_per_s=rate, stages=shares, reason=why)


def _shares(facts: Facts, inside: str | None) -> tuple[StageShare, ...]:
    """How a sample's time in a worker divides among stages; blocked time `inside` a stage counts as reading."""
    times_s = {stage: at_work_s(facts, stage) for stage in facts.wall_s}
    if inside in times_s:
        blocked_s = _blocked_s(facts, inside)
        times_s[inside] -= blocked_s
        times_s[READ] = times_s.get(READ, 0.0) + blocked_s
    whole_s = sum(times_s.values())
    names = sorted((name for name, time_s in times_s.items() if time_s > 0), key=stage_place)
    return tuple(StageShare(name, times_s[name] / whole_s) for name in names)


def _ipc(facts: Facts, bounds: Bounds, trials: list[Trial]) -> PipelinePart | None:
    if not facts.workers:
        return None
    rate = bounds.main_process
    why = None if rate else _reason(trials, "taking", "the main process was not traced")
    return PipelinePart(name="ipc", samples_per_s=rate, reason=why)


def _step(run: RunRecord, copied: float | None) -> PipelinePart:
    """The training step, with the copy if its share of the loop's own time is known."""
    if run.ceiling is None:
        return PipelinePart(name="step", samples_per_s=None, reason=run.not_measured.get("ceiling", "not measured"))
    stages = (StageShare(COPY, copied), StageShare(REST, 1 - copied)) if copied else ()
    return PipelinePart(name="step", samples_per_s=run.ceiling.samples_per_s, stages=stages)


def _copy_share(run: RunRecord, facts: Facts) -> tuple[float | None, str]:
    """The host-to-device copy as a share of the loop's own time, or why it is unknown."""
    busy = 1 - facts.wait_share
    if facts.transfer_share > 0 and busy > 0:
        return min(1.0, facts.transfer_share / busy), ""
    if why := _why_no_copy(run):
        return None, why
    isolation = run.isolation
    host = next((one.time_s for one in isolation.runs if one.name == "replay_host"), None) if isolation else None
    copy_s = isolation.transfer_s if isolation else None
    if host is None or copy_s is None:
        return None, isolation.not_measured.get("transfer_s", "not measured") if isolation else "no isolation runs"
    significant = copy_s.lo is not None and copy_s.lo > 0
    return (min(1.0, copy_s.est / host.est), "") if significant else (None, "not significant")


def _why_no_copy(run: RunRecord) -> str:
    """Why there is no copy to measure; empty if there can be one."""
    kind = consumer_kind(run.consumer)
    reasons = {
        "no GPU": not run.environment.gpus,
        'not marked with prof.stage("transfer")': kind.of_loop,
        f"the {kind.who} copies nothing": kind.capped,
        "consumer: none": not kind.consumes,
    }
    return next((why for why, holds in reasons.items() if holds), "")


def _bottleneck(verdict: Verdict, facts: Facts, bounds: Bounds) -> PartName | None:
    """The part that the verdict names by its bound, stage and limit; `None` if the bound is unknown."""
    if verdict.bound == "unknown":
        return None
    if verdict.bound != "input":
        return "step"
    if verdict.stage in ("transport", "main_process"):
        return "ipc" if facts.workers else "workers"
    if verdict.stage == READ and verdict.limit in _STORAGE:
        return "storage"
    full = verdict.limit == "cpu" and bounds.cpus is not None and bounds.cpus <= EQUAL * (bounds.workers or bounds.cpus)
    return "cpus" if full or verdict.limit in ("oversubscription", "quota", "neighbors") else "workers"


def _reason(trials: list[Trial], name: str, otherwise: str) -> str:
    return next((trial.not_measured[name] for trial in trials if name in trial.not_measured), otherwise)
