"""The verdict on a distributed training from those of its ranks: whether some hold back the others, and each machine.

Ranks that train together take each step together, so all wait for the rank whose batch comes last. Only that rank sees
the wait as data wait. If only one rank was recorded, the verdict is about it and says so. Rates and reads of machines
are also summed, because machines may share storage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import log
from statistics import median

from loaderbench.diagnosis.gathering import workers_of
from loaderbench.diagnosis.slow_steps import largest_difference, lost_in_backward, slow_in_steps, step_shares
from loaderbench.diagnosis.thresholds import NOTICED
from loaderbench.diagnosis.wording import in_percent
from loaderbench.ranks import RANKS
from loaderbench.records import Evidence, HostUse, OnlyRank, Rank, Trial, Verdict
from loaderbench.records.words import SENT_BY_RANK_0, in_bytes, sum_if_all_known

ALIKE = 0.5
"""Ranks that wait at least this share of the longest data wait are slow together."""

FASTER = 1.1
"""Ratio to the job's rate; a rank that loads no faster would hold back the others next."""

_MOST_NAMED = 4
_FIGURES = ("samples_per_s", "data_wait_share", "rank_wait_share", "step_line")


def trials_of_ranks(trials: Sequence[Trial]) -> tuple[Trial, ...]:
    """Each rank as a separate trial, from the trial with the median rate; empty if none has two ranks."""
    known = sorted((trial for trial in trials if len(trial.ranks) > 1), key=lambda trial: trial.samples_per_s or 0.0)
    if not known:
        return ()
    typical = known[(len(known) - 1) // 2]
    config = {axis: value for axis, value in typical.config.items() if axis != RANKS}
    return tuple(
        Trial(
            **vars(one),
            id=typical.id,
            role="profile",
            config=config,
            round=typical.round,
            status="completed",
            consumer=typical.consumer,
        )
        for one in typical.ranks
    )


def describe_ranks(trials: Sequence[Trial], verdict_of: Callable[[Trial], Verdict]) -> tuple[Rank, ...]:
    """The record of each rank, with the verdict on it."""
    return tuple(
        Rank(
            rank=trial.rank or 0,
            host=trial.host,
            device=f"GPU {trial.gpus[0].index}" if trial.gpus else None,
            samples_per_s=trial.samples_per_s,
            data_wait_share=trial.data_wait_share,
            rank_wait_share=trial.rank_wait_share,
            verdict=verdict_of(trial),
            step_parts=dict(step_shares(trial)),
            step_line=trial.step_line,
            not_measured=_reasons(trial),
        )
        for trial in trials
    )


def _reasons(trial: Trial) -> dict[str, str]:
    known = {name: why for name, why in trial.not_measured.items() if name in _FIGURES}
    return known if trial.gpus else {**known, "device": "no GPU in use was seen"}


def loading_rates(trials: Sequence[Trial]) -> dict[int, float]:
    """By rank, the samples/s that its workers could make without waits; only ranks whose stages are known.

    A rank that was ahead from the start has little data wait, yet can load as slowly as the others.
    """
    rates = {}
    for trial in trials:
        took_s = [cost.wall_s for cost in (trial.stages or {}).values()]
        wall_s = sum(one for one in took_s if one is not None)
        if trial.rank is not None and wall_s > 0 and None not in took_s:
            rates[trial.rank] = max(1, workers_of(trial)) / wall_s
    return rates


def step_rates(trials: Sequence[Trial]) -> dict[int, float]:
    """By rank, its steps per second; only ranks whose batches were counted."""
    return {
        one.rank: one.batches / one.steady_s for one in trials if one.rank is not None and one.batches and one.steady_s
    }


def slow_ranks(ranks: Sequence[Rank], rates: Mapping[int, float] | None = None) -> tuple[Rank, ...]:
    """The ranks whose data wait the others wait for, slowest first; empty if most ranks are alike.

    `rates` are the loading rates of the ranks, if known: the other ranks must load faster than the job.
    """
    known = sorted((one for one in ranks if one.data_wait_share is not None), key=_wait, reverse=True)
    if len(known) < 2 or known[0].verdict.bound != "input":
        return ()
    slow = [one for one in known if _wait(one) >= ALIKE * _wait(known[0])]
    others = known[len(slow) :]
    if len(slow) > len(others) or _typical(slow) - _typical(others) < NOTICED:
        return ()
    return tuple(slow) if _are_faster(others, rates or {}) else ()


def _are_faster(ranks: Sequence[Rank], rates: Mapping[int, float]) -> bool:
    known = [rates[one.rank] / one.samples_per_s for one in ranks if one.rank in rates and one.samples_per_s]
    return not known or median(known) >= FASTER


def of_job(verdict: Verdict, ranks: Sequence[Rank], trials: Sequence[Trial] = ()) -> Verdict:
    """The verdict on the slowest rank, extended to the complete training. `trials` are those of the ranks."""
    if found := _waiting_in_backward(ranks):
        return found
    slow = slow_ranks(ranks, loading_rates(trials))
    if slow and verdict.bound != "compute":  # else these ranks are from an unusual trial
        others = [one for one in ranks if one not in slow and one.data_wait_share is not None]
        if _are_independent(slow, others, step_rates(trials)):
            return _apart(verdict, slow, others, ranks)
        return _held_back(verdict, slow, others, ranks)
    together = [_wait(one) + one.rank_wait_share for one in ranks if one.rank_wait_share is not None]
    shared = median(together) if together else 0.0
    found = with_evidence(verdict, _sent_by_rank_0(ranks) or _range(ranks, shared))
    if verdict.bound in ("input", "unknown") or shared < NOTICED or not _wait_for_one_another(ranks):
        return found
    headline = f"each step waits for the slowest of {len(ranks)} ranks; the slowest rank varies"
    return replace(
        found,
        bound="input",
        stage=None,
        limit="imbalance",
        headline=headline,
        confidence="medium",
        not_measured={**found.not_measured, "stage": "a different rank is slowest each time"},
    )


def of_only_rank(verdict: Verdict, only: OnlyRank | None) -> Verdict:
    """The verdict on the only recorded rank, with a headline that names this rank."""
    return verdict if only is None else replace(verdict, headline=f"in {only} alone: {verdict.headline}")


def _wait_for_one_another(ranks: Sequence[Rank]) -> bool:
    """Whether a typical rank waits longer for others than for its own data."""
    known = [one for one in ranks if one.rank_wait_share is not None]
    return bool(known) and median(one.rank_wait_share or 0.0 for one in known) > _typical(known)


def _are_independent(slow: Sequence[Rank], others: Sequence[Rank], steps_per_s: Mapping[int, float]) -> bool:
    """Whether the others do not wait for the slow ranks, as in inference: they take more steps per second.

    Ranks that wait for one another have equal rates. Otherwise, their rates differ by as much as their data waits.
    """
    rates = [[steps_per_s[one.rank] for one in some if one.rank in steps_per_s] for some in (slow, others)]
    if not all(rates) or _typical(slow) >= 1:
        return False
    measured = median(rates[1]) / median(rates[0])
    without_waits = (1 - _typical(others)) / (1 - _typical(slow))
    return measured >= FASTER and log(measured) > log(without_waits) / 2


def _apart(verdict: Verdict, slow: Sequence[Rank], others: Sequence[Rank], ranks: Sequence[Rank]) -> Verdict:
    """The verdict on the slow ranks of a job in which the others do not wait for them."""
    named, rest = _named(slow, ranks), _others_named(others)
    waits = f"{_waits_of(slow, others, ranks)}; they do not wait for one another"
    headline = f"{named} {'loads' if len(slow) == 1 else 'load'} more slowly than {rest}: {verdict.headline}"
    found = with_evidence(verdict, Evidence("ranks", "Ranks", waits))
    return replace(found, rank=slow[0].rank, headline=headline)


def _waits_of(slow: Sequence[Rank], others: Sequence[Rank], ranks: Sequence[Rank]) -> str:
    waits = f"{_named(slow, ranks)} {'waits' if len(slow) == 1 else 'wait'} for data {in_percent(_typical(slow))}"
    return f"{waits} of step time, {_others_named(others)} {in_percent(_typical(others))}"


def _held_back(verdict: Verdict, slow: Sequence[Rank], others: Sequence[Rank], ranks: Sequence[Rank]) -> Verdict:
    named, rest, waits = _named(slow, ranks), _others_named(others), _waits_of(slow, others, ranks)
    lost = [other.rank_wait_share for other in others if other.rank_wait_share is not None]
    if lost:
        verb = "wait" if len(others) > 1 else "waits"
        waits += f"; {rest} {verb} for {_pronoun(slow)} {in_percent(median(lost))} of step time"
    headline = f"{named} {'holds' if len(slow) == 1 else 'hold'} back {rest}: {verdict.headline}"
    found = with_evidence(verdict, Evidence("ranks", "Ranks", waits))
    return replace(found, rank=slow[0].rank, headline=headline)


def _waiting_in_backward(ranks: Sequence[Rank]) -> Verdict | None:
    """The verdict on a job in which some ranks wait for the slow steps of others; `None` if no rank does.

    It is that of the slowest rank, if this rank waits less for data than others wait for it. Data waits of ranks that
    wait later in the step cost nothing.
    """
    slow = slow_in_steps(ranks)
    if not slow or slow[0].verdict.bound == "transfer" or _wait(slow[0]) >= lost_in_backward(slow, ranks):
        return None
    verdict = _without_cause(slow[0])
    rest = _others_named([one for one in ranks if one not in slow])
    verb = "wait" if len(ranks) - len(slow) > 1 else "waits"
    named, whose = _named(slow, ranks), "its" if len(slow) == 1 else "their"
    lost = f"{rest} {verb} for {named} at least {in_percent(lost_in_backward(slow, ranks))} of step time"
    line = Evidence("ranks", "Ranks", f"{lost}, in the backward pass; {whose} {largest_difference(slow, ranks)}")
    headline = f"{verdict.headline}; {rest} {verb} for the slow steps of {named}"
    return replace(with_evidence(verdict, line), rank=slow[0].rank, headline=headline)


def _without_cause(slow: Rank) -> Verdict:
    """The verdict on a rank with slow steps, without the cause of a shorter data wait."""
    if slow.verdict.bound == "compute":
        return slow.verdict
    shorter = "the data wait of this rank is shorter than the wait for its steps"
    waits = tuple(part for part in slow.verdict.evidence_parts if part.about != "cause")
    return replace(
        slow.verdict,
        bound="compute",
        stage=None,
        work=None,
        read_inside=None,
        limit="none",
        headline=f"data wait is {in_percent(_wait(slow))} of step time",
        evidence=tuple(map(str, waits)),
        evidence_parts=waits,
        against=(),
        not_measured={"stage": shorter},
    )


def _others_named(others: Sequence[Rank]) -> str:
    return f"the other {len(others)} ranks" if len(others) > 1 else f"rank {others[0].rank}"


def _pronoun(slow: Sequence[Rank]) -> str:
    return "it" if len(slow) == 1 else "them"


def with_evidence(verdict: Verdict, evidence: Evidence | None) -> Verdict:
    """The verdict with one more line of evidence, if there is one."""
    if evidence is None:
        return verdict
    parts = (*verdict.evidence_parts, evidence)
    return replace(verdict, evidence=tuple(map(str, parts)), evidence_parts=parts)


def _range(ranks: Sequence[Rank], shared: float) -> Evidence | None:
    waits = sorted(_wait(one) for one in ranks if one.data_wait_share is not None)
    if len(waits) < 2:
        return None
    least, most = in_percent(waits[0]), in_percent(waits[-1])
    span = most if least == most else f"{least} to {most}"
    text = f"{len(waits)} ranks wait for data {span} of step time"
    if shared >= waits[-1] + NOTICED:
        text += f"; including waits for other ranks, {in_percent(shared)}"
    return Evidence("ranks", "Ranks", text)


def _sent_by_rank_0(ranks: Sequence[Rank]) -> Evidence | None:
    """A line about ranks that get their batches from rank 0, if there are any."""
    if not any(one.not_measured.get("data_wait_share") == SENT_BY_RANK_0 for one in ranks):
        return None
    return Evidence("ranks", "Ranks", f"rank 0 loads the batches of all {len(ranks)} ranks; the others wait with it")


def _named(slow: Sequence[Rank], ranks: Sequence[Rank]) -> str:
    """The ranks' name, `rank 3 on b`; the host only if there are several."""
    numbers = sorted(one.rank for one in slow)
    shown = ", ".join(map(str, numbers[:_MOST_NAMED])) + (", ..." if len(numbers) > _MOST_NAMED else "")
    named = f"rank {shown}" if len(numbers) == 1 else f"{len(numbers)} ranks ({shown})"
    hosts = {one.host for one in slow}
    return f"{named} on {hosts.pop()}" if len(hosts) == 1 and len({one.host for one in ranks}) > 1 else named


def _wait(one: Rank) -> float:
    return one.data_wait_share or 0.0


def _typical(ranks: Sequence[Rank]) -> float:
    return median(map(_wait, ranks))


def describe_hosts(ranks: Sequence[Trial]) -> tuple[HostUse, ...]:
    """The use of each machine, ordered by its first rank; empty if all ranks ran on one machine."""
    names = list(dict.fromkeys(trial.host for trial in ranks))
    if len(names) < 2:
        return ()
    return tuple(_use(name, [trial for trial in ranks if trial.host == name]) for name in names)


def all_hosts(hosts: Sequence[HostUse]) -> HostUse | None:
    """The sums over all machines, without a name; `None` for a single machine."""
    if not hosts:
        return None
    rates, reads = ([getattr(one, name) for one in hosts] for name in ("samples_per_s", "read_bytes_per_s"))
    return _summed("", sum(one.ranks for one in hosts), rates, reads)


def with_storage(verdict: Verdict, hosts: Sequence[HostUse]) -> Verdict:
    """The verdict with the total reads of all machines as evidence, if storage is the limit."""
    return with_evidence(verdict, storage_evidence(verdict, hosts))


def storage_evidence(verdict: Verdict, hosts: Sequence[HostUse]) -> Evidence | None:
    """The line about total reads; `None` if storage is not the limit or the reads are unknown."""
    together = all_hosts(hosts)
    if together is None or not together.read_bytes_per_s or not (verdict.limit or "").startswith("storage"):
        return None
    total = in_bytes(int(together.read_bytes_per_s))
    text = f"{total}/s on {len(hosts)} hosts together: the load on their storage, if shared"
    return Evidence("ranks", "Reads", text)


def _use(name: str, trials: Sequence[Trial]) -> HostUse:
    loads = [trial.workers or trial.main_process for trial in trials]
    reads = [None if one is None else one.read_bytes_per_s for one in loads]
    return _summed(name, len(trials), [trial.samples_per_s for trial in trials], reads)


def _summed(host: str, ranks: int, rates: Sequence[float | None], reads: Sequence[float | None]) -> HostUse:
    samples_per_s, read_bytes_per_s = sum_if_all_known(rates), sum_if_all_known(reads)
    reasons = {}
    if samples_per_s is None:
        reasons["samples_per_s"] = "a rank counted no batches"
    if read_bytes_per_s is None:
        reasons["read_bytes_per_s"] = "the reads of a rank's processes are unknown"
    return HostUse(
        host=host, ranks=ranks, samples_per_s=samples_per_s, read_bytes_per_s=read_bytes_per_s, not_measured=reasons
    )
