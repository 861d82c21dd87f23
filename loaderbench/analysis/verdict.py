"""What bounds the run: the share of time the consumer waits for data, in the configuration to be used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loaderbench.analysis.failures import last_words
from loaderbench.analysis.inside import describe_inside
from loaderbench.records import Bound, Ceiling, Confidence, Config, Interval, Trial, Verdict, config_label

INPUT_BOUND_SHARE = 0.05  # xprof's and TraceML's first band; below it no change to the loader is worth the work
UNDECIDED_WIDTH = 0.2  # an interval this wide across the threshold decides nothing

CLEARLY_BELOW, CLEARLY_ABOVE = 0.025, 0.10
"""A single process has no interval: half the threshold and twice it are taken to be clearly on one side."""
NOTHING_BUT_WAITING = 0.999  # from this share on the rest of the loop is too short to divide by

_WHO = {"emulated": "the emulated accelerator", "model": "the accelerator", "loop": "your loop"}
_NOT_YET = "the diagnosis of the cause comes with a later version"


@dataclass(frozen=True)
class Subject:
    """The configuration a verdict is about, by the axes that vary. `is_best`: it won; else it merely looked fastest."""

    config: Config
    samples_per_s: Interval
    data_wait_share: Interval
    is_best: bool


def decide(subject: Subject | None, consumer: str, demand: float, doubts: int, trials: Sequence[Trial] = ()) -> Verdict:
    """Say what bounds it. `consumer` is a resolved kind; `doubts` counts the reasons to distrust the run."""
    if subject is None:
        return _nothing(trials, consumer)
    if consumer == "none":
        return _loader_alone(subject, doubts)
    wait = subject.data_wait_share
    bound = _bound(wait)
    if bound == "unknown":
        return _unknown(
            f"Too noisy to tell whether {_who(consumer)} waits for data: {percent(wait)} of its time.",
            f"the interval of the data wait share reaches across {INPUT_BOUND_SHARE * 100:.0f} %",
        )
    return Verdict(
        bound=bound,
        stage=None,
        limit="none" if bound == "compute" else None,
        headline=_headline(subject, bound, consumer, demand),
        evidence=(_waits(wait), _delivers(subject.samples_per_s), *_inside(consumer, trials)),
        confidence=_loop_confidence(wait.est, doubts) if consumer == "loop" else _confidence(_clear(wait), doubts),
        not_measured={"stage": "the loader keeps up"} if bound == "compute" else {"stage": _NOT_YET, "limit": _NOT_YET},
    )


def describe_ceiling(subject: Subject | None, consumer: str, demand: float) -> tuple[Ceiling | None, str]:
    """Samples/s with loading made free: the suite's demand, or a loop's own pace; others are not measured."""
    if subject is None:
        return None, "nothing was measured"
    if consumer == "loop":
        return _loop_ceiling(subject)
    if consumer != "emulated":
        return None, "without a consumer there is none" if consumer == "none" else "cached batches are not yet replayed"
    headspace = min(1.0, max(0.0, 1 - subject.samples_per_s.est / demand))
    return Ceiling(samples_per_s=demand, headspace=headspace, basis="the demand of the emulated accelerator"), ""


def _loop_ceiling(subject: Subject) -> tuple[Ceiling | None, str]:
    wait = subject.data_wait_share.est
    if wait >= NOTHING_BUT_WAITING:
        return None, "the loop did nothing but wait for data"
    rate = subject.samples_per_s.est / (1 - wait)
    return Ceiling(samples_per_s=rate, headspace=wait, basis="the loop's own time between batches"), ""


def percent(share: Interval) -> str:
    """`27 % (24-30 %)` with an en dash; without the bracket for a single round."""
    if share.lo is None or share.hi is None:
        return f"{share.est:.0%}".replace("%", " %")
    return f"{share.est * 100:.0f} % ({share.lo * 100:.0f}\N{EN DASH}{share.hi * 100:.0f} %)"


def _bound(wait: Interval) -> Bound:
    crosses = wait.lo is not None and wait.hi is not None and wait.lo < INPUT_BOUND_SHARE <= wait.hi
    if crosses and (wait.hi or 0) - (wait.lo or 0) > UNDECIDED_WIDTH:
        return "unknown"
    return "input" if wait.est >= INPUT_BOUND_SHARE else "compute"


def _headline(subject: Subject, bound: Bound, consumer: str, demand: float) -> str:
    where = "" if consumer == "loop" else _where(subject)
    wait, who = percent(subject.data_wait_share), _who(consumer)
    if bound == "compute":
        return f"The loader keeps up: {who} waits for data {wait} of its time{where and f' {where}'}."
    rate = f"{subject.samples_per_s.est:,.0f}"
    gets = (
        f"it could take {demand:,.0f} samples/s and gets {rate}"
        if consumer == "emulated"
        else f"it gets {rate} samples/s"
    )
    return f"{who[0].upper()}{who[1:]} waits for data {wait} of its time{where and f', even {where}'}: {gets}."


def _where(subject: Subject) -> str:
    config = f" ({config_label(subject.config)})" if subject.config else ""
    return f"in the {'best' if subject.is_best else 'fastest-looking'} configuration{config}"


def _waits(wait: Interval) -> str:
    return f"data wait share {percent(wait)}; {INPUT_BOUND_SHARE * 100:.0f} % or more is input-bound"


def _delivers(rate: Interval) -> str:
    spread = f" ({rate.lo:,.0f}\N{EN DASH}{rate.hi:,.0f})" if rate.lo is not None and rate.hi is not None else ""
    return f"{rate.est:,.0f}{spread} samples/s are delivered"


def _clear(wait: Interval) -> bool:
    """Whether there is an interval, and all of it on one side of the threshold."""
    return wait.lo is not None and wait.hi is not None and not wait.lo < INPUT_BOUND_SHARE <= wait.hi


def _confidence(decided: bool, doubts: int) -> Confidence:
    if not decided:
        return "low"
    return "medium" if doubts else "high"


def _loop_confidence(wait: float, doubts: int) -> Confidence:
    return "medium" if not doubts and (wait < CLEARLY_BELOW or wait > CLEARLY_ABOVE) else "low"


def _inside(consumer: str, trials: Sequence[Trial]) -> tuple[str, ...]:
    """What a loop's one trial tells; a sweep has many trials, and each tells something else."""
    return describe_inside(trials) if consumer == "loop" else ()


def _nothing(trials: Sequence[Trial], consumer: str) -> Verdict:
    failure = trials[-1].failure if trials else None
    if consumer == "loop" and failure is not None:
        why = last_words(failure.message).rstrip(".")
    elif not trials:
        why = "the run ended before its first trial was done"
    elif any(trial.status == "completed" for trial in trials):
        why = "no trial delivered a sample"
    else:
        why = "every trial failed"
    return _unknown(f"Nothing was measured: {why}.", why)


def _loader_alone(subject: Subject, doubts: int) -> Verdict:
    rate = subject.samples_per_s
    return Verdict(
        bound="input",
        stage=None,
        limit=None,
        headline=f"Nothing consumes the batches, so that the loader is the limit: {rate.est:,.0f} samples/s at best.",
        evidence=(_delivers(rate),),
        confidence=_confidence(rate.lo is not None, doubts),
        not_measured={"stage": _NOT_YET, "limit": _NOT_YET},
    )


def _unknown(headline: str, why: str) -> Verdict:
    return Verdict(
        bound="unknown",
        stage=None,
        limit=None,
        headline=headline,
        evidence=(why,),
        confidence="low",
        not_measured={"stage": why, "limit": why},
    )


def _who(consumer: str) -> str:
    return {"emulated": "the emulated accelerator", "model": "the accelerator", "loop": "your loop"}.get(
        consumer, "the consumer"
    )
