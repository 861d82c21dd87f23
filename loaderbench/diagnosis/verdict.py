"""Decides what bounds the run: the data wait of the configuration to be used, its cause, and what speaks against it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loaderbench.consumers import consumer_kind, describe_target
from loaderbench.diagnosis.bottlenecks import bottlenecks_in_words, with_measured
from loaderbench.diagnosis.cause import RULES, Cause, apply, find_cause
from loaderbench.diagnosis.epochs import costs_in_words
from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.failures import last_words
from loaderbench.diagnosis.limits import disturbed, have_work, idle_time
from loaderbench.diagnosis.operational import LIMIT_NAMES, bounds_in_words, operational_bounds
from loaderbench.diagnosis.ranking import Subject
from loaderbench.diagnosis.shortage import Shortage
from loaderbench.diagnosis.slow_steps import longer_than_the_wait, step_parts_in_words
from loaderbench.diagnosis.swapping import swapping_in_words, waits_for_swap
from loaderbench.diagnosis.thresholds import ALMOST, CONFLICT, NOTICED, TIED, TRANSFER
from loaderbench.diagnosis.wording import (
    available_cpus,
    between_epochs_in_words,
    describe_inside,
    first_batch_in_words,
    in_percent,
    percent,
    stage_name,
    throughput,
    transfers,
    waits,
    where,
)
from loaderbench.diagnosis.worker_settings import worker_settings_in_words
from loaderbench.records import (
    Bottleneck,
    Bound,
    Confidence,
    EpochCost,
    Evidence,
    Interval,
    Trial,
    Verdict,
    WorkerSetting,
    config_label,
)
from loaderbench.records.words import count

UNDECIDED_WIDTH = 0.2  # an interval this wide across the threshold is inconclusive

CLEARLY_BELOW, CLEARLY_ABOVE = 0.025, 0.10
"""Without an interval, for a single process, half and twice the threshold count as clearly below and above."""

_ONE_LOWER: dict[Confidence, Confidence] = {"high": "medium", "medium": "low", "low": "low"}
_NO_STAGES = "nothing was measured inside the loader"
_UNTRACED = "use Profiler(trace=True) to measure inside the loader"
_ALIKE_FROM_OUTSIDE = "storage latency and bandwidth look alike from outside the process"
_LOADER_ALONE = Evidence("consumer", "Consumer", "none; throughput is the loader's own")


def decide(
    subject: Subject | None,
    consumer: str,
    demand: float | None,
    doubts: int,
    *,
    target: Evidence | None = None,
    trials: Sequence[Trial] = (),
    costs: Sequence[EpochCost] = (),
    shortage: Shortage | None = None,
    bottlenecks: Sequence[Bottleneck] = (),
    settings: Sequence[WorkerSetting] = (),
    earlier: Sequence[Trial] = (),
) -> Verdict:
    """Decide what bounds the run, and why.

    `consumer` is a resolved kind, `demand` its demand in samples/s if it has one; `doubts` counts the reasons to
    distrust the run; `target` is the demand as a line of evidence; `costs` are those of an epoch. `shortage` is what
    configurations with more workers ran out of. `bottlenecks` are the stages that were made free, `settings` the worker
    settings measured alongside them. `earlier` are the trials of the earlier version.
    """
    if subject is None:
        return _only_earlier(trials) if _any_completed(earlier) else _nothing_measured(trials, consumer, shortage)
    bound = _bound(subject, consumer)
    cause = find_cause(subject.facts) if bound == "input" and subject.facts else None
    cause = with_measured(cause, subject.facts, bottlenecks)
    evidence = (*_evidence(subject, consumer, demand, target, trials), *_other_costs(cause, costs, subject.facts))
    evidence = (*bottlenecks_in_words(bottlenecks), *worker_settings_in_words(settings), *evidence)
    evidence = (*([shortage.evidence()] if shortage and bound != "compute" else []), *evidence)
    if bound == "unknown":
        wait, limit = percent(subject.data_wait_share), f"includes {in_percent(NOTICED)}, the cutoff for input-bound"
        interval = Evidence("wait", "Data wait interval", limit)
        return _unknown(f"too noisy to decide; data wait is {wait} of step time", interval, *evidence)
    found = Verdict(
        bound=bound,
        stage=None,
        limit="none" if bound == "compute" else None,
        headline=_headline(subject, bound, consumer),
        evidence=tuple(map(str, evidence)),
        evidence_parts=evidence,
        confidence=_confidence(subject, consumer, doubts),
        confidence_reasons=_doubts_of_numbers(subject, consumer, doubts),
        not_measured={"stage": "the loader keeps up"},
    )
    if bound == "transfer" and subject.facts:
        why = "the host-to-device copy is not part of the loader"
        return replace(_prepend_evidence(found, *transfers(subject.facts)), not_measured={"stage": why, "limit": why})
    if bound == "compute":
        return _prepend_evidence(found, *step_parts_in_words(trials))
    caused = _with_cause(found, subject.facts, cause, consumer)
    if shortage and cause and subject.facts and caused.limit == "workers":
        held = f"more workers do not fit in {shortage.place}"
        return replace(caused, headline=f"{held}{where(cause.work, subject.facts)}")
    return caused


def _prepend_evidence(found: Verdict, *first: Evidence) -> Verdict:
    """The verdict with other evidence before its own."""
    evidence = (*first, *found.evidence_parts)
    return replace(found, evidence=tuple(map(str, evidence)), evidence_parts=evidence)


def _bound(subject: Subject, consumer: str) -> Bound:
    wait, facts = subject.data_wait_share, subject.facts
    starts = facts.startup_share if facts else 0.0
    if not consumer_kind(consumer).consumes or (facts and starts >= max(NOTICED, facts.transfer_share)):
        return "input"
    crosses = wait.lo is not None and wait.hi is not None and wait.lo < NOTICED <= wait.hi
    if crosses and (wait.hi or 0) - (wait.lo or 0) > UNDECIDED_WIDTH:
        return "unknown"
    if facts and facts.transfer_share >= max(TRANSFER, wait.est):
        return "transfer"
    return "input" if wait.est >= NOTICED else "compute"


def _other_costs(cause: Cause | None, costs: Sequence[EpochCost], facts: Facts | None) -> tuple[Evidence, ...]:
    """The costs of an epoch, without its startup if that is the cause and already stated, and time between epochs."""
    between = between_epochs_in_words(facts) if facts else ()
    if cause and cause.limit == "startup":
        return (*costs_in_words([cost for cost in costs if cost.name not in ("boundary", "first_batch")]), *between)
    return (*costs_in_words(costs), *(first_batch_in_words(facts) if facts else ()), *between)


def _with_cause(found: Verdict, facts: Facts | None, cause: Cause | None, consumer: str) -> Verdict:
    """Add the cause of a wait to the verdict, or say why there is none."""
    why = _UNTRACED if consumer_kind(consumer).of_loop else _NO_STAGES
    if facts is not None and cause is None and not have_work(facts) and facts.idle_share is not None:
        why = f"workers are idle {in_percent(idle_time(facts))} of the time, and no measured wait explains it"
        found = replace(found, headline=f"cause unknown; {why}")
    if facts is None or cause is None:
        return replace(found, not_measured={"stage": why, "limit": why})
    timed = bool(facts.cpu_s) or cause.stage != "sample"
    caused = replace(
        _prepend_evidence(found, *_neighbors(cause, facts), cause.why, *_more_of(cause, facts)),
        stage=cause.stage if timed else None,
        work=cause.work if timed else None,
        read_inside=cause.read_inside,
        limit=cause.limit,
        headline=cause.clause,
        against=(*([cause.overruled] if cause.overruled else []), *speaks_against(facts, cause)),
        confidence=_lowered(found.confidence, cause, facts),
        confidence_reasons=(*found.confidence_reasons, *_doubts_of_cause(cause, facts)),
        not_measured={},
    )
    return caused if caused.stage else replace(caused, not_measured={"stage": why})


def _more_of(cause: Cause, facts: Facts) -> tuple[Evidence, ...]:
    """How much memory is swapped out, if that is the cause."""
    return swapping_in_words(facts) if cause.limit == "memory" and waits_for_swap(facts) else ()


def _neighbors(cause: Cause, facts: Facts) -> tuple[Evidence, ...]:
    """How many CPUs other programs hold, if these are the limit."""
    held = f"{facts.others_cpus or 0:.1f} of {available_cpus(facts.cpus)} busy"
    return (Evidence("cause", "Other programs", held),) if cause.limit == "neighbors" else ()


def _lowered(confidence: Confidence, cause: Cause, facts: Facts) -> Confidence:
    """Low if other programs disturb or the rate contradicts the cause; one level lower if others are as likely."""
    if disturbed(facts) or conflicting(facts):
        return "low"
    return _ONE_LOWER[confidence] if _is_near_tie(facts, cause) or _is_ambiguous_storage(cause, facts) else confidence


def _is_near_tie(facts: Facts, cause: Cause) -> bool:
    """Whether two stages cost almost the same, and free-stage trials have not shown which gains more."""
    return not cause.is_measured and near_tie(facts, cause)


def _is_ambiguous_storage(cause: Cause, facts: Facts) -> bool:
    """Whether storage is the limit, seen from outside, and its dependence on bytes is unknown."""
    storage = cause.limit in ("storage_latency", "storage_bandwidth")
    return facts.from_outside and storage and facts.bytes_share is None


def _doubts_of_cause(cause: Cause, facts: Facts) -> tuple[str, ...]:
    """Reasons to doubt the cause."""
    return (
        *(["other programs use CPUs that the loader needs"] if disturbed(facts) else []),
        *(["throughput exceeds what the traced times allow"] if conflicting(facts) else []),
        *([f"{costliest_two(facts)} cost almost the same"] if _is_near_tie(facts, cause) else []),
        *([_ALIKE_FROM_OUTSIDE] if _is_ambiguous_storage(cause, facts) else []),
    )


def _evidence(
    subject: Subject, consumer: str, demand: float | None, target: Evidence | None, trials: Sequence[Trial]
) -> tuple[Evidence, ...]:
    kind, starts = consumer_kind(consumer), subject.facts.startup_share if subject.facts else 0.0
    return (
        *([waits(subject.data_wait_share, starts)] if kind.consumes else []),
        *(longer_than_the_wait(trials) if kind.of_loop and subject.data_wait_share.est >= NOTICED else ()),
        *([throughput(subject.samples_per_s, _subject(subject, consumer))] if subject.samples_per_s else []),
        *([] if kind.consumes else [_LOADER_ALONE]),
        *([] if demand is None else [target or describe_target(demand)]),
        *_inside(subject, consumer, trials),
        *(bounds_in_words(operational_bounds(subject.facts, demand)) if subject.facts else ()),
    )


def _subject(subject: Subject, consumer: str) -> str:
    """The subject as in `Best config batch_size=32 num_workers=2`; a profiled loop has no configuration to name."""
    if consumer_kind(consumer).of_loop or not subject.config:
        return "Throughput"
    return f"{'Best config' if subject.is_best else 'Fastest estimate'} {config_label(subject.config)}"


def _headline(subject: Subject, bound: Bound, consumer: str) -> str:
    """The headline without a cause."""
    if bound == "compute":
        return f"the loader keeps up; data wait is {percent(subject.data_wait_share)} of step time"
    if bound == "transfer":
        share = subject.facts.transfer_share if subject.facts else 0.0
        return f"host-to-device copy takes {in_percent(share)} of time, data wait {percent(subject.data_wait_share)}"
    return f"cause unknown; {_UNTRACED if consumer_kind(consumer).of_loop else _NO_STAGES}"


def _confidence(subject: Subject, consumer: str, doubts: int) -> Confidence:
    if consumer_kind(consumer).of_loop:
        wait = subject.data_wait_share.est
        doubted = doubts or _without_stacks(subject)
        return "medium" if not doubted and (wait < CLEARLY_BELOW or wait > CLEARLY_ABOVE) else "low"
    if not _has_conclusive_interval(subject, consumer):
        return "low"
    return "medium" if doubts else "high"


def _has_conclusive_interval(subject: Subject, consumer: str) -> bool:
    """Whether the verdict's main number has a conclusive interval."""
    if consumer_kind(consumer).consumes:
        return _is_conclusive(subject.data_wait_share)
    return subject.samples_per_s is not None and subject.samples_per_s.lo is not None


def _without_stacks(subject: Subject) -> bool:
    """Whether the trial is an attached process with kernel readings only."""
    return subject.samples_per_s is None and not (subject.facts and subject.facts.wall_s)


def _doubts_of_numbers(subject: Subject, consumer: str, doubts: int) -> tuple[str, ...]:
    """Reasons to doubt the numbers of this configuration and of the complete run."""
    kind, wait = consumer_kind(consumer), subject.data_wait_share
    warned = (count(doubts, "warning"),) if doubts else ()
    if kind.of_loop:
        near = CLEARLY_BELOW <= wait.est <= CLEARLY_ABOVE
        clearly = f"data wait is between {CLEARLY_BELOW:.1%} and {CLEARLY_ABOVE:.0%}"
        kernel = ("no stack samples: the main thread may wait for something other than data",)
        seen = kernel if _without_stacks(subject) else ()
        return (*([clearly] if near else []), *seen, "a profile is one process, so it has no interval", *warned)
    known = wait if kind.consumes else subject.samples_per_s
    if known is None or known.lo is None:
        return ("only one round was measured", *warned)
    crosses = kind.consumes and not _is_conclusive(wait)
    return (*([f"the interval of data wait includes {NOTICED:.0%}"] if crosses else []), *warned)


def _is_conclusive(wait: Interval) -> bool:
    """Whether there is an interval entirely on one side of the threshold."""
    return wait.lo is not None and wait.hi is not None and not wait.lo < NOTICED <= wait.hi


def _inside(subject: Subject, consumer: str, trials: Sequence[Trial]) -> tuple[Evidence, ...]:
    """Evidence from inside a loop's single trial; empty for a sweep, whose many trials differ."""
    if not consumer_kind(consumer).of_loop:
        return ()
    return describe_inside(trials, is_loader=subject.facts is None or subject.facts.is_loader)


def _nothing_measured(trials: Sequence[Trial], consumer: str, shortage: Shortage | None) -> Verdict:
    failure = trials[-1].failure if trials else None
    if consumer_kind(consumer).of_loop and failure is not None:
        why = last_words(failure.message).rstrip(".")
    elif not trials:
        why = "the run ended before the first trial completed"
    elif why_unseen := next(filter(None, map(_why_no_wait, trials)), ""):
        return _unknown(f"cause unknown; {why_unseen}", Evidence("failure", "", why_unseen))
    elif _any_completed(trials):
        why = "no trial delivered a sample"
    else:
        why = f"every trial failed; {shortage.place} is too small" if shortage else "every trial failed"
    said = (shortage.evidence(),) if shortage else ()
    return _unknown(f"nothing was measured: {why}", Evidence("failure", "", why), *said)


def _only_earlier(later: Sequence[Trial]) -> Verdict:
    """The verdict of a comparison whose later version has no rate."""
    if not later:
        why = "the run ended before its first trial completed"
    else:
        why = "none of its trials delivered a sample" if _any_completed(later) else "all of its trials failed"
    return _unknown(f"the later version was not measured: {why}", Evidence("failure", "", why))


def _any_completed(trials: Sequence[Trial]) -> bool:
    return any(trial.status == "completed" for trial in trials)


def _why_no_wait(trial: Trial) -> str:
    """Why the data wait of a profiled loop is unknown."""
    is_loop = trial.role == "profile" and trial.status == "completed" and trial.data_wait_share is None
    return trial.not_measured["data_wait_share"] if is_loop else ""


def _unknown(headline: str, *evidence: Evidence) -> Verdict:
    """An unknown verdict; the first line of evidence is the reason."""
    why = str(evidence[0])
    return Verdict(
        bound="unknown",
        stage=None,
        limit=None,
        headline=headline,
        evidence=tuple(map(str, evidence)),
        evidence_parts=evidence,
        confidence="low",
        not_measured={"stage": why, "limit": why},
    )


def speaks_against(facts: Facts, cause: Cause) -> tuple[str, ...]:
    """Evidence against the cause: findings of other rules, and another stage that costs almost as much."""
    others = [found for rule in RULES[:-1] if (found := apply(rule, facts)) is not None]
    evidence = [str(found.why) for found in others if (found.work, found.limit) != (cause.work, cause.limit)]
    if near_tie(facts, cause, ALMOST):
        first, second, *_ = _stages_by_cost(facts)
        evidence.append(
            f"{stage_name(second[0])} costs {in_percent(second[1] / first[1])} as much as {stage_name(first[0])}"
        )
    if cause.limit == "cpu" and facts.more_are_faster:
        evidence.append("more workers were measured as faster, without a consumer")
    return (*evidence, *_conflict(facts))


def near_tie(facts: Facts, cause: Cause, share: float = TIED) -> bool:
    """Whether another stage costs at least this share of the stage that was named for its cost."""
    ranked = _stages_by_cost(facts)
    return cause.limit in ("workers", "cpu") and len(ranked) > 1 and ranked[1][1] >= share * ranked[0][1] > 0


def costliest_two(facts: Facts) -> str:
    """The two stages of a near tie: `decode and transform`."""
    (first, _), (second, _), *_ = _stages_by_cost(facts)
    return f"{stage_name(first)} and {stage_name(second)}"


def _stages_by_cost(facts: Facts) -> list[tuple[str, float]]:
    return sorted(facts.cpu_s.items(), key=lambda item: -item[1])


def conflicting(facts: Facts) -> bool:
    """Whether throughput exceeds what the traced times allow."""
    return bool(_conflict(facts))


def _conflict(facts: Facts) -> tuple[str, ...]:
    for name, rate in operational_bounds(facts).known.items():
        measured = facts.samples_per_s if name == "cpus" else facts.own_samples_per_s * facts.ranks_of_rate
        if measured > CONFLICT * rate:
            allowed = f"{rate:,.0f} that traced times allow ({LIMIT_NAMES[name]})"
            return (f"measured {measured:,.0f} samples/s, above the {allowed}",)
    return ()
