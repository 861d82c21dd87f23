"""Draw conclusions from measurements: summarize, choose, diagnose and recommend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from loaderbench.consumers import computes_on_cpus, consumer_kind, demand_of, demand_rate, describe_demand
from loaderbench.datasets import options_to_try
from loaderbench.diagnosis.bottlenecks import describe_bottlenecks
from loaderbench.diagnosis.contention import describe_contention
from loaderbench.diagnosis.copy_bandwidth import with_bandwidth
from loaderbench.diagnosis.epochs import epoch_costs
from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.gathering import gather
from loaderbench.diagnosis.gpu_memory import describe_gpu_memory
from loaderbench.diagnosis.gpu_warnings import power_notes
from loaderbench.diagnosis.hotspots import find_hotspots
from loaderbench.diagnosis.isolation import describe_isolation, find_ceiling, with_exposed_copy
from loaderbench.diagnosis.ranking import Ranking, Subject, expected_wait, rank, rate_cap, subject_of
from loaderbench.diagnosis.ranks import (
    all_hosts,
    describe_hosts,
    describe_ranks,
    of_job,
    of_only_rank,
    trials_of_ranks,
    with_storage,
)
from loaderbench.diagnosis.shortage import Shortage, find_shortage, more_workers_fail
from loaderbench.diagnosis.slow_steps import with_estimated_waits
from loaderbench.diagnosis.verdict import decide
from loaderbench.diagnosis.warnings import (
    describe_noise,
    describe_overhead,
    find_setup_notes,
    find_warnings,
    warn_of_only_rank,
)
from loaderbench.diagnosis.worker_settings import describe_worker_settings, with_other_counts
from loaderbench.ranks import process_count
from loaderbench.records import (
    Bottleneck,
    Candidate,
    Conclusions,
    Config,
    Configuration,
    DatasetSummary,
    EpochCost,
    HostUse,
    Isolation,
    Measured,
    Noise,
    Rank,
    Reasons,
    Recommendation,
    RunRecord,
    Trial,
    Verdict,
    WorkerSetting,
    varying,
)
from loaderbench.remedies import Diagnosis, Findings, candidates_for, recommend
from loaderbench.remedies.streams import loader_arguments
from loaderbench.remedies.target_call import target_call, traits_with_same_data
from loaderbench.statistics.choice import describe_baseline
from loaderbench.statistics.configurations import summarize
from loaderbench.statistics.faster_arguments import with_tuned
from loaderbench.statistics.judging import judged
from loaderbench.statistics.sides import compare_sides
from loaderbench.statistics.target_rate import target_rate

AnyMeasured = TypeVar("AnyMeasured", bound=Measured)

NO_ISOLATION = "a profile has no isolation runs"
NO_FINAL = "this run had no final"
NO_PREDICTION = "every rate is measured; no config is predicted from others"
ONE_VERSION = "one version was measured"
NO_BOTTLENECKS = "a profile runs no free-stage trials"
NOT_VERIFIED = "this run tried no fixes"


def conclude(measured: Measured) -> RunRecord:
    """Apply this version's rules to a new or saved run, without measuring."""
    measured = with_judgements(measured)
    return with_tuned(RunRecord.of(measured, _conclusions(measured)))


def with_judgements(measured: AnyMeasured) -> AnyMeasured:
    """Judge tried fixes that were saved without a judgment, by runs of earlier versions."""
    found = measured.verification
    if found is None or all(tried.judgement for tried in found.tried):
        return measured
    return replace(measured, verification=judged(found, measured.remedy_trials, measured.plan.baseline))


def _conclusions(measured: Measured) -> Conclusions:
    """Draw each conclusion from the measurements and the conclusions before it."""
    plan, trials, ranking = measured.plan, measured.sweep, rank(measured)
    configurations, best, found = ranking.configurations, ranking.best, ranking.subject
    config = found.config if found else None
    isolation, why_no_isolation = _isolation(measured)
    of_config = [trial for trial in trials if trial.config == config]
    settings, why_no_settings = _worker_settings(measured, config)
    facts = _facts(measured, isolation, found.config, of_config, settings) if found else None
    subject = subject_of(found, plan.axes, facts, is_best=found is best) if found else None
    noise = describe_noise(trials, measured.twins)
    warnings = _warnings(measured, configurations, noise)
    demand = target_rate(measured, config or {})
    ceiling, why_no_ceiling = find_ceiling(isolation, why_no_isolation, subject, measured.consumer, demand)
    costs = epoch_costs(of_config, measured.loader)
    bottlenecks, why_no_bottlenecks = _bottlenecks(measured, config)
    own_verdict = _verdict(measured, subject, config, costs, len(warnings), bottlenecks=bottlenecks, settings=settings)
    verdict, ranks, hosts = _training_verdict(measured, own_verdict, of_config)
    together = all_hosts(hosts)
    overhead = describe_overhead(trials)
    gpu_memory, why_no_memory = describe_gpu_memory(trials, measured.loader)
    comparison, gates = compare_sides(measured)
    known = {
        "best": (best, ranking.why_no_best),
        "ceiling": (ceiling, why_no_ceiling),
        "isolation": (isolation, why_no_isolation),
        "gpu_memory": (gpu_memory, why_no_memory),
        "overhead": (overhead, _why_no_overhead(trials)),
        "all_hosts": (together, "one host"),
        "comparison": (comparison, ONE_VERSION),
        **_optional_parts(measured),
    }
    return Conclusions(
        configurations=configurations,
        best=best,
        baseline=describe_baseline(configurations, plan.baseline, plan.baseline_why),
        ceiling=ceiling,
        verdict=verdict,
        recommendations=_recommendations(measured, ranking, verdict, facts),
        overhead=overhead,
        noise=noise,
        warnings=warnings,
        setup_notes=tuple(find_setup_notes(trials, measured)),
        remarks=(*rate_cap(measured.notes, configurations, demand), *power_notes(trials, measured.environment)),
        epoch_costs=costs,
        isolation=isolation,
        contention=describe_contention(config, trials, measured.environment.cpus_allotted),
        gpu_memory=gpu_memory,
        hotspots=find_hotspots(of_config),
        ranks=ranks,
        hosts=hosts,
        all_hosts=together,
        comparison=comparison,
        gates=gates,
        bottlenecks=bottlenecks,
        worker_settings=settings,
        not_measured={name: why for name, (value, why) in known.items() if value is None}
        | why_no_bottlenecks
        | why_no_settings,
    )


def _optional_parts(measured: Measured) -> dict[str, tuple[object, str]]:
    """Optional parts of a run, with the reason why each is missing."""
    no_demand = "the run did not keep it" if measured.consumer == "emulated" else "no GPU was emulated"
    return {
        "side_by_side": (measured.side_by_side, ONE_VERSION),
        "only_rank": (measured.only_rank, "no rank was recorded without the others"),
        "assumed_demand": (measured.assumed_demand, no_demand),
        "cpu_percent_before": (measured.cpu_percent_before, "CPU use was not measured before the first trial"),
        "final": (measured.final, measured.left_out.get("final") or NO_FINAL),
        "prediction": (None, NO_PREDICTION),
        "verification": (measured.verification, measured.left_out.get("verification") or NOT_VERIFIED),
    }


def _why_no_overhead(trials: Sequence[Trial]) -> str:
    reasons = [one.not_measured.get("recorder_s_per_batch", "") for one in trials if one.status == "completed"]
    return next(filter(None, reasons), "no trial completed")


def _training_verdict(
    measured: Measured, verdict: Verdict, trials: Sequence[Trial]
) -> tuple[Verdict, tuple[Rank, ...], tuple[HostUse, ...]]:
    """Return the verdict on all ranks of a distributed training, the ranks, and their machines."""
    of_ranks = measured.rank_trials or trials_of_ranks(trials)
    ranks = describe_ranks(of_ranks, lambda trial: _verdict_of_rank(measured, trial))
    if consumer_kind(measured.consumer).consumes:  # else each rank only waits for data
        verdict = of_only_rank(of_job(verdict, ranks, of_ranks), measured.only_rank)
    hosts = describe_hosts(of_ranks)
    return with_storage(verdict, hosts), with_estimated_waits(ranks), hosts


def _bottlenecks(measured: Measured, config: Config | None) -> tuple[tuple[Bottleneck, ...], Reasons]:
    """The gain if a stage were free; measured only for the configuration of the verdict."""
    if measured.kind == "profile":
        return (), {"bottlenecks": NO_BOTTLENECKS}
    trials = [trial for trial in measured.freed_trials if trial.config == config]
    return describe_bottlenecks(trials, measured.left_out)


def _worker_settings(measured: Measured, config: Config | None) -> tuple[tuple[WorkerSetting, ...], Reasons]:
    """Results with other worker settings; measured only for the configuration of the verdict."""
    if config is None:
        return (), {}
    return describe_worker_settings(measured.freed_trials, config, measured.loader, measured.left_out)


def _verdict_of_rank(measured: Measured, trial: Trial) -> Verdict:
    """The verdict on one rank of a distributed training, as if it ran alone."""
    plan = replace(measured.plan, configs=(trial.config,), baseline=trial.config)
    return _conclusions(replace(measured, plan=plan, trials=(replace(trial, role="profile", rank=None),))).verdict


def _demand_rate(measured: Measured, config: Config | None) -> float | None:
    """The demand of all ranks, regardless of batch size."""
    rate = demand_rate(measured)
    return None if rate is None else process_count(config or {}) * rate


def _warnings(measured: Measured, configurations: Sequence[Configuration], noise: Noise) -> tuple[str, ...]:
    found = find_warnings(
        measured.sweep,
        configurations,
        noise,
        measured.loader,
        measured.kind,
        cpu_percent_before=measured.cpu_percent_before,
        others=measured.remedy_trials,
        environment=measured.environment,
    )
    return (*warn_of_only_rank(measured.only_rank), *found)


def _verdict(
    measured: Measured,
    subject: Subject | None,
    config: Config | None,
    costs: Sequence[EpochCost],
    warnings: int,
    *,
    bottlenecks: Sequence[Bottleneck],
    settings: Sequence[WorkerSetting],
) -> Verdict:
    assumed = demand_of(measured)
    return decide(
        subject,
        measured.consumer,
        target_rate(measured, config or {}),
        warnings,
        target=describe_demand(assumed, process_count(config or {})) if assumed else None,
        trials=measured.sweep,
        costs=costs,
        shortage=_shortage(measured, config),
        bottlenecks=bottlenecks,
        settings=settings,
        earlier=[trial for trial in measured.ab_trials if trial.side == "before"],
    )


def _shortage(measured: Measured, config: Config | None) -> Shortage | None:
    """The shortage in configurations with more workers than this one, named by the axes that vary."""
    found = find_shortage(measured.sweep, config) if measured.kind == "sweep" else None
    return found and replace(found, config=varying(found.config, measured.plan.axes))


def _facts(
    measured: Measured,
    isolation: Isolation | None,
    config: Config,
    trials: Sequence[Trial],
    settings: Sequence[WorkerSetting],
) -> Facts | None:
    """Facts of a configuration from its trials, with its exposed copy if the isolation runs used this configuration."""
    facts = gather(trials, measured.environment)
    if facts is not None:
        compared = [*measured.sweep, *measured.remedy_trials]
        facts = with_other_counts(facts, config, measured.loader, compared, settings)
    return with_exposed_copy(facts, isolation) if isolation and isolation.config == config else facts


def _isolation(measured: Measured) -> tuple[Isolation | None, str]:
    if measured.kind == "profile":
        return None, NO_ISOLATION
    runs = measured.isolation_trials
    found, why = describe_isolation(
        measured.sweep,
        measured.isolation_trials,
        left_out=measured.left_out,
        consumer=measured.consumer,
        demand=target_rate(measured, runs[0].config if runs else {}),
        cache=str(measured.section("measure").get("cache", "warm")),
    )
    return (with_bandwidth(found, measured.isolation_trials, measured.loader) if found else None), why


def _recommendations(
    measured: Measured, ranking: Ranking, verdict: Verdict, facts: Facts | None
) -> tuple[Recommendation, ...]:
    """Recommendations: what the sweep measured, what the cause suggests, and the results of tried fixes."""
    subject = ranking.subject
    return recommend(
        Findings(
            configurations=ranking.configurations,
            trials=measured.sweep,
            remedy_trials=measured.remedy_trials,
            best=ranking.best,
            baseline=measured.plan.baseline,
            axes=measured.plan.axes,
            accelerator=bool(measured.environment.gpus),
            loader=loader_arguments(measured),
            why_no_best=ranking.why_no_best,
            diagnosis=_diagnosis(measured, subject.config, verdict, facts) if subject and facts else None,
            later=_later_diagnoses(measured),
            profile=measured.kind == "profile",
            of_script=measured.is_of_script,
            verification=measured.verification,
            options=_options(measured),
            demand_of=partial(target_rate, measured),
            call_of=partial(target_call, measured),
            classes=measured.dataset.classes,
            highest_memory_limit_bytes=measured.environment.highest_memory_limit_bytes,
        )
    )


def _later_diagnoses(measured: Measured) -> tuple[Diagnosis, ...]:
    """Diagnoses after each accepted fix, in the order they were made."""
    verification = measured.verification
    if verification is None:
        return ()
    trials = [*measured.sweep, *measured.remedy_trials]
    configs = [tried.against for tried in verification.tried if tried.against != verification.present]
    unique = list({tuple(config.items()): config for config in configs}.values())
    found = (diagnose(measured, config, trials) for config in unique)
    return tuple(diagnosis for diagnosis in found if diagnosis is not None)


def candidates(measured: Measured, config: Config) -> tuple[Candidate, ...] | None:
    """Fixes that the cause of `config` calls for, by the trials so far; `None` if the cause is unknown."""
    diagnosis = diagnose(measured, config, [*measured.sweep, *measured.remedy_trials])
    if diagnosis is None or diagnosis.verdict.bound == "unknown":
        return None
    return candidates_for(diagnosis)


def diagnose(measured: Measured, config: Config, trials: Sequence[Trial]) -> Diagnosis | None:
    """Diagnose one configuration for the fixes; `None` if its internals were not measured.

    The diagnosis equals the run's verdict without parts that concern only the run: warnings, epoch costs, shortage,
    target. With several ranks, it also has the slow rank.
    """
    own_trials = [trial for trial in trials if trial.config == config]
    consumed = [trial for trial in own_trials if trial.consumer in (None, measured.consumer)]
    own_trials = consumed or own_trials
    settings, _ = _worker_settings(measured, config)
    facts = _facts(measured, _isolation(measured)[0], config, own_trials, settings)
    subject = subject_of(summarize([config], own_trials)[0], measured.plan.axes, facts, is_best=True)
    if facts is None or subject is None:
        return None
    demand = target_rate(measured, config)
    if own_trials and not consumed and demand is not None and subject.samples_per_s is not None:
        subject = replace(subject, data_wait_share=expected_wait(subject.samples_per_s, demand))
    bottlenecks, _ = _bottlenecks(measured, config)
    verdict = decide(subject, measured.consumer, demand, 0, trials=own_trials, bottlenecks=bottlenecks)
    slow_rank = _training_verdict(measured, verdict, own_trials)[0].rank
    return _diagnosis(measured, config, replace(verdict, rank=slow_rank), facts)


def _diagnosis(measured: Measured, config: Config, verdict: Verdict, facts: Facts) -> Diagnosis:
    """A verdict with everything that fixes need to know about its configuration."""
    options = _options(measured)
    return Diagnosis(
        verdict,
        facts,
        {**measured.loader, **config},
        loader_arguments(measured),
        accelerator=bool(measured.environment.gpus),
        options=None if options is None else {**options, **config},
        files=_files_of_folder(measured.dataset),
        shared_memory_bytes=measured.environment.sharable_memory_bytes,
        demand=_demand_rate(measured, config),
        profile=measured.kind == "profile",
        traits=traits_with_same_data(measured, config),
        call=target_call(measured, config),
        classes=measured.dataset.classes,
        workers_fit=not more_workers_fail(measured.sweep, config),
        gpu_kind=next((gpu.kind for gpu in measured.environment.gpus), "cuda"),
        gpu_named=(assumed := demand_of(measured)) is not None and assumed.origin in ("accelerator", "calibration"),
        step_on_cpu=computes_on_cpus(measured.section("consumer")),
    )


def _files_of_folder(dataset: DatasetSummary) -> int | None:
    """The number of files; `None` if not all were listed. Older runs do not say whether they were."""
    return None if "total_files" in dataset.not_measured else dataset.total_files or dataset.files


def _options(measured: Measured) -> dict[str, Any] | None:
    """The dataset's options if it has options to try; `None` for a user's dataset."""
    return options_to_try(measured.section("dataset")) if measured.kind in ("sweep", "ab") else None
