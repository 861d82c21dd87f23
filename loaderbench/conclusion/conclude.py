"""Summarise, choose, diagnose and recommend."""

from __future__ import annotations

from collections.abc import Sequence

from loaderbench.conclusion.advice import advise
from loaderbench.conclusion.candidates import make_diagnosis
from loaderbench.conclusion.measured import Measured
from loaderbench.diagnosis.ceiling import find_ceiling
from loaderbench.diagnosis.contention import describe_contention
from loaderbench.diagnosis.epochs import epoch_costs, said
from loaderbench.diagnosis.isolation import UNKNOWN, describe_ladder
from loaderbench.diagnosis.subject import facts_of, find_subject, subject_config, with_cap_noted
from loaderbench.diagnosis.verdict import decide
from loaderbench.diagnosis.warnings import describe_noise, describe_overhead, find_doubts
from loaderbench.records import (
    Best,
    Configuration,
    Ladder,
    Reasons,
    RunRecord,
)
from loaderbench.statistics.choice import choose_best, describe_baseline
from loaderbench.statistics.configurations import summarise

ONE_CONFIGURATION = "a profile measures one configuration"
NO_LADDER = "a profile takes no part of the user's loop away"
NOT_VERIFIED = "no remedy was tried: this run was made without it"


def conclude(measured: Measured) -> RunRecord:
    """Summarise, choose, diagnose and recommend."""
    demand = measured.demand
    configurations = summarise(measured.configs, measured.trials)
    best, why_no_best = _choose(measured, configurations)
    noise = describe_noise(measured.trials, measured.twins, measured.cpu_percent_before)
    doubts = tuple(find_doubts(measured.trials, configurations, noise, measured.loader, measured.kind))
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
    facts = subject.facts if subject is not None else None
    diagnosis = make_diagnosis(measured, config, verdict, facts) if config is not None and facts is not None else None
    overhead = describe_overhead(measured.trials)
    known = {
        "prediction": (None, "this version does not predict what it has not measured"),
        "best": (best, why_no_best),
        "ceiling": (ceiling, why_no_ceiling),
        "ladder": (ladder, why_no_ladder),
        "overhead": (overhead, "no trial was completed"),
        "verification": (measured.verification, measured.no_verification or NOT_VERIFIED),
    }
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
        recommendations=advise(measured, configurations, best, why_no_best, diagnosis),
        prediction=None,
        overhead=overhead,
        noise=noise,
        warnings=doubts,
        notes=with_cap_noted(measured.notes, configurations, measured.consumer, demand),
        consumer=measured.consumer,
        kind=measured.kind,
        ladder=ladder,
        contention=describe_contention(config, measured.trials, measured.environment.cpus_allotted),
        verification=measured.verification,
        not_measured={name: why for name, (value, why) in known.items() if value is None},
        loaderbench_version=measured.version,
        suite_file=measured.suite_file,
        overrides=measured.overrides,
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
            suite_file=run.suite_file,
            overrides=run.overrides,
            kind=run.kind,
            rungs=run.ladder.trials if run.ladder else (),
            no_rungs=_left_out(run),
            verification=run.verification,
            no_verification=run.not_measured.get("verification", ""),
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
