"""Results of tried fixes as recommendations: a gain with its interval, or the absence of a gain on this machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from loaderbench.consumers import NOTHING, consumer_kind
from loaderbench.datasets.image_folder import copied_stride
from loaderbench.diagnosis.epochs import epoch_costs
from loaderbench.diagnosis.failures import last_words
from loaderbench.diagnosis.wording import in_percent, in_seconds
from loaderbench.loaders.shared_batches import SHARE
from loaderbench.records import (
    Config,
    Configuration,
    EpochCost,
    Gain,
    Interval,
    Judgement,
    Recommendation,
    Trial,
    Tried,
    Verification,
    config_label,
    config_name,
)
from loaderbench.records.words import count
from loaderbench.remedies.base import doubts, gain_at_another_time
from loaderbench.remedies.findings import Findings
from loaderbench.remedies.larger_batch import caveat_of_batch
from loaderbench.remedies.program import yaml_change
from loaderbench.remedies.wording import (
    NO_GAIN,
    NOT_COMPARED,
    applied,
    argument,
    costs,
    evidence,
    phrase,
    pixels_of,
    retitled,
)
from loaderbench.statistics.configurations import summarize
from loaderbench.statistics.intervals import excludes_one, ratio_interval, times
from loaderbench.statistics.judging import ENOUGH_PAIRS, WORTH_IT
from loaderbench.statistics.target_rate import AT_THE_CAP

COMBINATION = "combination"


def with_trials(found: Sequence[Recommendation], findings: Findings) -> tuple[Recommendation, ...]:
    """The recommendations with the results of their trials; the combination of all accepted fixes comes first."""
    verification = findings.verification
    if verification is None:
        return tuple(found)
    answered = [_close_if_overridden(_with_result(advice, findings, verification), verification) for advice in found]
    whole = _combination(findings, verification, found)
    if whole is None:
        return tuple(answered)
    return (whole, *(advice for advice in answered if advice.id != "best_combination"))


def _with_result(advice: Recommendation, findings: Findings, verification: Verification) -> Recommendation:
    """The advice with the result of the try that counts: a gain on its own, else the accepted try, else the first."""
    tries = [tried for tried in verification.tried if tried.id == advice.id]
    if not tries:
        return advice
    alone = [tried for tried in tries if tried.against == verification.present and _is_gain(tried)]
    chosen = (*alone, *(tried for tried in tries if tried.accepted), tries[0])[0]
    found = chosen.judgement
    if found is None:
        return advice
    if _sweep_still_holds(advice, chosen, found):
        return advice
    if found.ratio is None:
        why = _last_failure(chosen.config, findings.remedy_trials)
        return replace(advice, status="not_checked", basis=None, reason=f"Tried, not measured: {why}")
    both = _common_rounds(chosen.against, chosen.config, findings.remedy_trials)
    before, after = summarize([chosen.against, chosen.config], both)
    gain = gain_at_another_time(found.ratio, found.pairs, findings)
    measured = replace(
        advice,
        title=_title_of_tried(advice, chosen.change),
        change=chosen.change,
        against=chosen.against,
        basis="measured",
        gain=gain,
        before=before.samples_per_s,
        after=after.samples_per_s,
        evidence=(
            *_rates(before, after, chosen.change),
            *_pairs(found, found.ratio, gain),
            *_gains_on_top(chosen, tries, verification),
        ),
        trials=(*before.trials, *after.trials),
        pixels=pixels_of(advice.pixels, chosen),
        costs=(
            *_known_costs(advice),
            *longer_step(chosen.against, chosen.config, both),
            *costs(before, after, findings.loader),
        ),
        caveat=_caveats(
            advice.caveat, caveat_of_batch(chosen.against, chosen.config), _of_few(chosen.config, findings)
        ),
        snippet=findings.program(chosen.config),
        snippet_yaml=yaml_change(chosen.change, chosen.config, findings.loader, findings.options),
        reason=None,
    )
    return replace(measured, status="open") if found.answer == "gain" else _no_gain(measured, found)


def _sweep_still_holds(advice: Recommendation, chosen: Tried, found: Judgement) -> bool:
    """Whether the sweep's advice still holds: another value was tried without a gain, or the trials were undecided."""
    if advice.basis != "measured" or found.answer == "gain":
        return False
    other = any(chosen.change.get(axis, value) != value for axis, value in advice.change.items())
    return found.answer in ("failed", "undecided") or (advice.status == "open" and other)


def _is_gain(tried: Tried) -> bool:
    return tried.judgement is not None and tried.judgement.answer == "gain"


def _title_of_tried(advice: Recommendation, tried: Config) -> str:
    """The title with the tried values, and with arguments that were also changed so the trial fits in memory.

    If the sweep had no advice, its title names no value, and the tried values replace the title.
    """
    if advice.status != "open":
        return f"Set {' + '.join(argument(axis, value) for axis, value in tried.items())}"
    further = [argument(axis, value) for axis, value in tried.items() if axis not in advice.change]
    return " + ".join([retitled(advice.title, advice.change, tried), *further])


def _known_costs(advice: Recommendation) -> tuple[str, ...]:
    """Costs that hold for any value of the change. Costs from the sweep hold only for the value that it measured."""
    return () if advice.basis == "measured" else advice.costs


def _close_if_overridden(advice: Recommendation, verification: Verification) -> Recommendation:
    """Close the sweep's advice if a fix tried later set another value of the same axis."""
    axes = {axis for tried in verification.accepted for axis in tried.change}
    again = {axis: verification.config[axis] for axis in axes & advice.change.keys()}
    of_sweep = all(tried.id != advice.id for tried in verification.tried)
    if advice.status != "open" or not of_sweep or all(advice.change[axis] == value for axis, value in again.items()):
        return advice
    return replace(advice, status="already_ok", reason=f"A fix tried later set {config_label(again)}")


def _gains_on_top(chosen: Tried, tries: Sequence[Tried], verification: Verification) -> Iterator[str]:
    """Yield what the same fix gained on top of other fixes."""
    for tried in tries:
        found = tried.judgement
        if tried is not chosen and found is not None and found.ratio is not None:
            others = {k: v for k, v in tried.against.items() if verification.present.get(k) != v}
            yield f"{f'On top of {config_label(others)}' if others else 'Alone'}: {times(found.ratio)}"


def _no_gain(advice: Recommendation, found: Judgement) -> Recommendation:
    """The advice with the reason why the tried fix is not recommended."""
    ratio = found.ratio
    assert ratio is not None
    if found.answer == "loss":
        return replace(advice, status="already_ok", reason=f"Tried, slower: {times(ratio)}")
    if found.answer == "no gain":
        return replace(advice, status="already_ok", reason=f"Tried, {NO_GAIN[0].lower()}{NO_GAIN[1:]}: {times(ratio)}")
    certain = found.pairs >= ENOUGH_PAIRS and excludes_one(ratio)
    why = "too few pairs"
    if certain and 1 < ratio.est < WORTH_IT:
        why = "too small to decide"
    elif certain:
        why = "significant at 95%, but trying several fixes requires 99%"
    pairs = count(found.pairs, "pair")
    return replace(advice, status="not_checked", reason=f"Tried, undecided after {pairs}: {times(ratio)}; {why}")


def _combination(
    findings: Findings, verification: Verification, found: Sequence[Recommendation]
) -> Recommendation | None:
    """The change from the baseline to all accepted fixes; `None` if a single change is equivalent."""
    baseline, last = findings.baseline, verification.config
    if not verification.accepted:
        return None
    change = {name: value for name, value in last.items() if baseline.get(name) != value}
    how = verification.whole
    alone = baseline == verification.present and len(verification.accepted) == 1
    if how is None or how.ratio is None or how.answer != "gain" or alone:
        return None
    ids = {tried.id for tried in verification.accepted}
    parts = [advice for advice in found if advice.id in ids]
    of_sweep, of_parts = caveat_of_batch(baseline, last), (advice.caveat for advice in parts)
    altered = NOT_COMPARED if findings.alters_pixels(change) else None
    before, after = summarize([baseline, last], _common_rounds(baseline, last, findings.remedy_trials))
    gain = gain_at_another_time(how.ratio, how.pairs, findings)
    return Recommendation(
        id=COMBINATION,
        title=_title(change, verification.accepted, parts),
        change=change,
        against=baseline,
        basis="measured",
        gain=gain,
        before=before.samples_per_s,
        after=after.samples_per_s,
        status="open",
        evidence=(*_rates(before, after, change), *_pairs(how, how.ratio, gain)),
        trials=(*before.trials, *after.trials),
        costs=(
            *dict.fromkeys(cost for part in parts for cost in _known_costs(part)),
            *costs(before, after, findings.loader),
        ),
        caveat=_caveats(of_sweep, *of_parts, _of_few(last, findings)),
        pixels=pixels_of(next((part.pixels for part in parts if part.pixels), altered), verification),
        snippet=findings.program(last),
        snippet_yaml=yaml_change(change, last, findings.loader, findings.options),
    )


def _caveats(*caveats: str | None) -> str | None:
    return ". ".join(dict.fromkeys(filter(None, caveats))) or None


def _of_few(config: Config, findings: Findings) -> str | None:
    """The caveat about memory if only a part of the images was resized and cached; else `None`."""
    files = None if findings.diagnosis is None else findings.diagnosis.files
    if not (config.get("presize") and config.get("image_cache") and files):
        return None
    stride = copied_stride(files)
    return f"Memory was measured with one in {stride} images" if stride > 1 else None


def _title(change: Config, accepted: Sequence[Tried], parts: Sequence[Recommendation]) -> str:
    """Name each accepted fix by its title and all other arguments by value; if too long, name everything by value."""
    known = {part.id: part for part in parts}
    last = {axis: (known[tried.id], tried) for tried in accepted if tried.id in known for axis in tried.change}
    said = [
        phrase(_own_title(*last[axis])) if axis in last else argument(axis, value) for axis, value in change.items()
    ]
    return applied(list(dict.fromkeys(said)), [argument(axis, value) for axis, value in change.items()])


def _own_title(part: Recommendation, tried: Tried) -> str:
    return retitled(part.title, part.change, tried.change)


def _rates(before: Configuration, after: Configuration, change: Config) -> Iterator[str]:
    """Yield both rates: the unchanged one with its full configuration, the changed one with only the change."""
    yield evidence(config_name(before.config), before)
    yield evidence(f"with {config_label(change)}", after)


def _pairs(found: Judgement, ratio: Interval, gain: Gain) -> tuple[str, ...]:
    """The number of pairs and their average; and, for a gain, whether a repeat may have none."""
    average = f"Interleaved pairs: {found.pairs}; {times(ratio)} on average in this run"
    return (average, *(doubts(gain) if found.answer == "gain" else ()))


def _common_rounds(before: Config, after: Config, trials: Sequence[Trial]) -> list[Trial]:
    """Trials of the rounds that contain both configurations: both rates then come from the same minutes."""
    rounds = [{trial.round for trial in trials if trial.config == config} for config in (before, after)]
    both = rounds[0] & rounds[1]
    return [trial for trial in trials if trial.round in both and trial.config in (before, after)]


def _last_failure(config: Config, trials: Sequence[Trial]) -> str:
    failures = [trial.failure for trial in trials if trial.config == config and trial.failure]
    return f"{failures[-1].kind}: {last_words(failures[-1].message)}" if failures else "no pair of trials"


LARGE_SHARE = 0.1
"""Share of an epoch's time from which startup cancels much of the gain of workers or larger batches."""

_WITHOUT_START = "set persistent_workers=True or use an endless sampler"
_STARTUP_ARGUMENTS = {"batch_size", "num_workers"}
"""Arguments that change how long an epoch takes to start."""


def with_start_caveat(advice: Recommendation, findings: Findings) -> Recommendation:
    """Add a caveat if epochs lose much time to startup, which the trials exclude."""
    if advice.status != "open" or advice.basis != "measured" or not _STARTUP_ARGUMENTS & set(advice.change):
        return advice
    if advice.change.get(SHARE):  # these workers start once
        return advice
    start = _startup_cost(advice, findings)
    if start is None or start.share is None or start.share < LARGE_SHARE:
        return advice
    without = "use an endless sampler" if advice.change.get("num_workers") == 0 else _WITHOUT_START
    lost = f"{in_seconds(start.s_per_epoch)} per epoch ({in_percent(start.share)})"
    caveat = f"Gain excludes startup: {lost}. To keep most of it, {without}"
    return replace(advice, caveat=". ".join(filter(None, (advice.caveat, caveat))))


def _startup_cost(advice: Recommendation, findings: Findings) -> EpochCost | None:
    """Time that each epoch of the changed configuration loses before its first batch."""
    changed = [
        trial
        for trial in (*findings.trials, *findings.remedy_trials)
        if trial.id in advice.trials and advice.change.items() <= trial.config.items() and not trial.epoch_ends
    ]
    return next((cost for cost in epoch_costs(changed, findings.loader) if cost.name == "first_batch"), None)


def longer_step(before: Config, after: Config, trials: Iterable[Trial]) -> Iterator[str]:
    """Yield by what factor the training step gets longer, if it does, in pairs of the same round.

    Step time is the time per batch minus the data wait. Trials in time slices do not record the wait of their slices.
    """
    found = list(trials)
    ratio = ratio_interval(_steps_s(after, found), _steps_s(before, found))
    if ratio is not None and ratio.est > 1 and excludes_one(ratio):
        yield f"Training step is {times(ratio)} as long"


def _steps_s(config: Config, trials: Iterable[Trial]) -> dict[int, float]:
    """Seconds per sample spent in the training step, by round."""
    return {
        trial.round: (1 - trial.data_wait_share) / trial.samples_per_s
        for trial in trials
        if trial.config == config and _has_step(trial) and trial.samples_per_s and trial.data_wait_share is not None
        if trial.data_wait_share < 1
    }


def _has_step(trial: Trial) -> bool:
    kind = consumer_kind(trial.consumer or "")
    return trial.time_slices is None and trial.consumer is not None and kind.consumes and not kind.capped


def with_target(advice: Recommendation, findings: Findings) -> Recommendation:
    """Set whether the recommendation's rate meets the demand; unchanged without a demand or a rate.

    The demand is met if the rate's lower bound meets it. A consumer that caps the rate hides how far a change exceeds
    the demand, so a gain near the cap is a floor, whether or not the demand is met.
    """
    after = advice.after
    demand = findings.demand_of({**(advice.against or findings.baseline), **advice.change})
    if demand is None or after is None or advice.gain is None:
        return advice
    sure = after.est if after.lo is None else after.lo
    capped = after.est >= AT_THE_CAP * demand and not _is_own_rate(advice, findings)
    return replace(advice, gain=replace(advice.gain, is_floor=capped), meets_target=sure >= demand)


def _is_own_rate(advice: Recommendation, findings: Findings) -> bool:
    """Whether the recommendation's trials ran without a consumer."""
    trials = [trial for trial in (*findings.trials, *findings.remedy_trials) if trial.id in advice.trials]
    return bool(trials) and all(trial.consumer == NOTHING for trial in trials)
