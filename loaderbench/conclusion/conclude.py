"""From what was measured to what it means: pure, so that a saved run can be concluded again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from loaderbench.analysis.ceiling import find_ceiling
from loaderbench.analysis.choice import choose_best, describe_baseline
from loaderbench.analysis.configurations import summarise
from loaderbench.analysis.contention import describe_contention
from loaderbench.analysis.doubts import describe_noise, describe_overhead, find_doubts
from loaderbench.analysis.epochs import epoch_costs, said
from loaderbench.analysis.ladder import UNKNOWN, describe_ladder
from loaderbench.analysis.subject import facts_of, find_subject, subject_config, with_cap_noted
from loaderbench.analysis.verdict import Subject, decide
from loaderbench.records import (
    Best,
    Config,
    Configuration,
    DatasetSummary,
    Environment,
    Kind,
    Ladder,
    PlanSummary,
    Reasons,
    Recommendation,
    RunRecord,
    Trial,
    Verdict,
)
from loaderbench.remedies import Diagnosis, Findings, recommend

ONE_CONFIGURATION = "a profile measures one configuration"
NO_LADDER = "a profile takes no part of the user's loop away"


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A run before anything is concluded from it. `twins` are the second half of the A/A pair.

    `rungs` are the ladder's trials, `no_rungs` why others (or all, under `ladder`) were not measured.
    """

    name: str
    suite: dict[str, Any]
    environment: Environment
    dataset: DatasetSummary
    plan: PlanSummary
    configs: Sequence[Config]
    baseline: Config
    baseline_why: str
    consumer: str
    trials: Sequence[Trial]
    twins: Sequence[Trial]
    cpu_percent_before: float | None
    started_at: str
    finished_at: str
    complete: bool
    notes: Sequence[str] = field(default_factory=tuple)
    version: str = ""
    kind: Kind = "sweep"
    rungs: Sequence[Trial] = ()
    no_rungs: Reasons = field(default_factory=dict)


def conclude(measured: Measured) -> RunRecord:
    """Summarise, choose, diagnose and recommend."""
    demand = float(measured.suite.get("consumer", {}).get("demand") or 1.0)
    configurations = summarise(measured.configs, measured.trials)
    best, why_no_best = _choose(measured, configurations)
    noise = describe_noise(measured.trials, measured.twins, measured.cpu_percent_before)
    loader = measured.suite.get("loader") or {}
    doubts = tuple(find_doubts(measured.trials, configurations, noise, loader, measured.kind))
    subject = find_subject(
        best,
        configurations,
        measured.plan.axes,
        lambda config: facts_of(config, measured.trials, measured.environment),
    )
    config = subject_config(best, configurations)
    ladder, why_no_ladder = _ladder(measured, demand)
    ceiling, why_no_ceiling = find_ceiling(ladder, why_no_ladder, subject, measured.consumer, demand)
    costs = epoch_costs([trial for trial in measured.trials if trial.config == config])
    verdict = decide(subject, measured.consumer, demand, len(doubts), trials=measured.trials, more=said(costs))
    diagnosis = _diagnosis(measured, subject, verdict, config)
    overhead = describe_overhead(measured.trials)
    reasons: Reasons = {"prediction": "this version does not predict what it has not measured"}
    for name, value, why in (
        ("best", best, why_no_best),
        ("ceiling", ceiling, why_no_ceiling),
        ("ladder", ladder, why_no_ladder),
        ("overhead", overhead, "no trial was completed"),
    ):
        if value is None:
            reasons[name] = why
    return RunRecord(
        name=measured.name,
        suite=measured.suite,
        environment=measured.environment,
        dataset=measured.dataset,
        plan=measured.plan,
        started_at=measured.started_at,
        finished_at=measured.finished_at,
        complete=measured.complete,
        trials=tuple(measured.trials),
        configurations=configurations,
        best=best,
        baseline=describe_baseline(configurations, measured.baseline, measured.baseline_why),
        ceiling=ceiling,
        verdict=verdict,
        epoch_costs=costs,
        recommendations=_recommend(measured, configurations, best, why_no_best, diagnosis),
        prediction=None,
        overhead=overhead,
        noise=noise,
        warnings=doubts,
        notes=with_cap_noted(measured.notes, configurations, measured.consumer, demand),
        consumer=measured.consumer,
        kind=measured.kind,
        ladder=ladder,
        contention=describe_contention(config, measured.trials, measured.environment.cpus_allotted),
        not_measured=reasons,
        loaderbench_version=measured.version,
    )


def conclude_again(run: RunRecord) -> RunRecord:
    """Apply this version's rules to a saved run; measures nothing."""
    baseline = run.baseline
    return conclude(
        Measured(
            name=run.name,
            suite=run.suite,
            environment=run.environment,
            dataset=run.dataset,
            plan=run.plan,
            configs=[found.config for found in run.configurations],
            baseline=baseline.config if baseline else {},
            baseline_why=baseline.why_this_one if baseline else "",
            consumer=run.consumer,
            trials=run.trials,
            twins=run.noise.aa_trials,
            cpu_percent_before=run.noise.cpu_percent_before,
            started_at=run.started_at,
            finished_at=run.finished_at,
            complete=run.complete,
            notes=run.notes,
            version=run.loaderbench_version,
            kind=run.kind,
            rungs=run.ladder.trials if run.ladder else (),
            no_rungs=_left_out(run),
        )
    )


def _ladder(measured: Measured, demand: float) -> tuple[Ladder | None, str]:
    if measured.kind == "profile":
        return None, NO_LADDER
    cache = str((measured.suite.get("measure") or {}).get("cache", "warm"))
    return describe_ladder(
        measured.trials,
        measured.rungs,
        left_out=measured.no_rungs,
        consumer=measured.consumer,
        demand=demand,
        cache=cache,
    )


def _left_out(run: RunRecord) -> Reasons:
    """Why rungs of a saved run were not measured."""
    if run.ladder is None:
        return {"ladder": run.not_measured.get("ladder", UNKNOWN)}
    return {rung.name: rung.not_measured.get("time_s", "") for rung in run.ladder.rungs if not rung.trials}


def _choose(measured: Measured, configurations: Sequence[Configuration]) -> tuple[Best | None, str]:
    if measured.kind == "profile":
        return None, ONE_CONFIGURATION
    return choose_best(configurations, measured.baseline, measured.trials, measured.plan.rounds)


def _recommend(
    measured: Measured,
    configurations: Sequence[Configuration],
    best: Best | None,
    why_no_best: str,
    diagnosis: Diagnosis | None,
) -> tuple[Recommendation, ...]:
    """Ask the remedies."""
    findings = Findings(
        configurations=configurations,
        trials=measured.trials,
        best=best,
        baseline=measured.baseline,
        axes=measured.plan.axes,
        accelerator=bool(measured.environment.gpus),
        loader=measured.suite.get("loader") or {},
        why_no_best=why_no_best,
        diagnosis=diagnosis,
        profile=measured.kind == "profile",
    )
    return recommend(findings)


def _diagnosis(
    measured: Measured, subject: Subject | None, verdict: Verdict, config: Config | None
) -> Diagnosis | None:
    """What the remedies of a cause go by; `None` where nothing is known of the subject's inside."""
    if subject is None or subject.facts is None:
        return None
    loader = measured.suite.get("loader") or {}
    return Diagnosis(verdict, subject.facts, {**loader, **(config or {})}, loader, bool(measured.environment.gpus))
