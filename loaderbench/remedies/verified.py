"""Results of tried remedies as recommendations: a gain with its interval, or that there is none here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from loaderbench.diagnosis.epochs import epoch_costs
from loaderbench.diagnosis.failures import last_words
from loaderbench.diagnosis.wording import in_percent, in_seconds
from loaderbench.records import (
    Config,
    Configuration,
    EpochCost,
    Gain,
    Judgement,
    Recommendation,
    Trial,
    Tried,
    Verification,
    config_label,
)
from loaderbench.remedies.findings import Findings
from loaderbench.remedies.program import python_program, yaml_change
from loaderbench.remedies.wording import costs, evidence, listed
from loaderbench.statistics.configurations import summarise
from loaderbench.statistics.intervals import excludes_one
from loaderbench.statistics.judging import SMALL
from loaderbench.statistics.ratios import times

COMBINATION = "combination"


def with_trials(found: Sequence[Recommendation], findings: Findings) -> tuple[Recommendation, ...]:
    """The recommendations with what was tried of them; all that was accepted first, together."""
    verification = findings.verification
    if verification is None:
        return tuple(found)
    answered = [_unless_set_again(_answered(advice, findings, verification), verification) for advice in found]
    whole = _combination(findings, verification, found)
    if whole is None:
        return tuple(answered)
    return (whole, *(advice for advice in answered if advice.id != "best_combination"))


def _answered(advice: Recommendation, findings: Findings, verification: Verification) -> Recommendation:
    """The result of the try that counts: the accepted one, else the first."""
    tries = [tried for tried in verification.tried if tried.id == advice.id]
    if not tries:
        return advice
    chosen = next((tried for tried in tries if tried.accepted), tries[0])
    found = chosen.judgement
    if found is None:
        return advice
    if found.answer in ("failed", "undecided") and advice.basis == "measured":
        return advice  # by the sweep
    if found.ratio is None:
        why = _last_failure(chosen.config, findings.remedy_trials)
        return replace(
            advice, status="not_checked", basis=None, reason=f"it was tried and could not be measured: {why}"
        )
    both = _of_both(chosen.against, chosen.config, findings.remedy_trials)
    before, after = summarise([chosen.against, chosen.config], both)
    measured = replace(
        advice,
        change=chosen.change,
        against=chosen.against,
        basis="measured",
        gain=Gain("samples_per_s", found.ratio.est, found.ratio.lo, found.ratio.hi),
        evidence=(
            *_rates(before, after, chosen.change),
            f"{found.pairs} pairs, interleaved",
            *_on_top(chosen, tries, verification),
        ),
        trials=(*before.trials, *after.trials),
        caveat=_caveat(advice.caveat, chosen),
        costs=(*advice.costs, *(cost for cost in costs(before, after) if cost not in advice.costs)),
        snippet=python_program(chosen.config, findings.loader, findings.options),
        snippet_yaml=yaml_change(chosen.change),
        reason=None,
    )
    return measured if found.answer == "gain" else _no_gain(measured, found)


def _unless_set_again(advice: Recommendation, verification: Verification) -> Recommendation:
    """What the sweep recommends is no advice where trying remedies kept something else for the same axis."""
    axes = {axis for tried in verification.accepted for axis in tried.change}
    again = {axis: verification.config[axis] for axis in axes & advice.change.keys()}
    of_sweep = all(tried.id != advice.id for tried in verification.tried)
    if advice.status != "open" or not of_sweep or all(advice.change[axis] == value for axis, value in again.items()):
        return advice
    return replace(advice, status="already_ok", reason=f"remedies were tried since, and kept {config_label(again)}")


def _on_top(chosen: Tried, tries: Sequence[Tried], verification: Verification) -> Iterator[str]:
    """What the same remedy gave on top of others."""
    for tried in tries:
        found = tried.judgement
        if tried is not chosen and found is not None and found.ratio is not None:
            others = {k: v for k, v in tried.against.items() if verification.present.get(k) != v}
            yield f"{f'on top of {config_label(others)}' if others else 'alone'}: {times(found.ratio)}"


def _no_gain(advice: Recommendation, found: Judgement) -> Recommendation:
    """Tried, and why it is not recommended."""
    ratio = found.ratio
    assert ratio is not None
    if found.answer == "loss":
        return replace(advice, status="already_ok", reason=f"tried: it was slower, {times(ratio)}")
    if found.answer == "no gain":
        return replace(
            advice, status="already_ok", reason=f"tried: no gain of more than {(SMALL - 1) * 100:.0f}%, {times(ratio)}"
        )
    what = "too few pairs to tell" if not excludes_one(ratio) else "not sure enough, for one of several that were tried"
    return replace(
        advice, status="not_checked", reason=f"tried and undecided after {found.pairs} pairs: {times(ratio)}; {what}"
    )


def _combination(
    findings: Findings, verification: Verification, found: Sequence[Recommendation]
) -> Recommendation | None:
    """From the baseline to all that was accepted; `None` where a card of one change says the same."""
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
    known = "; ".join(advice.caveat for advice in parts if advice.caveat)
    before, after = summarise([baseline, last], _of_both(baseline, last, findings.remedy_trials))
    return Recommendation(
        id=COMBINATION,
        title=f"Change {listed(list(change))} together",
        change=change,
        against=baseline,
        basis="measured",
        gain=Gain("samples_per_s", how.ratio.est, how.ratio.lo, how.ratio.hi),
        status="open",
        evidence=(*_rates(before, after, change), f"{how.pairs} pairs, interleaved"),
        trials=(*before.trials, *after.trials),
        costs=(*(cost for advice in parts for cost in advice.costs), *costs(before, after)),
        caveat=_caveat(known or None, verification),
        snippet=python_program(last, findings.loader, findings.options),
        snippet_yaml=yaml_change(change),
    )


def _rates(before: Configuration, after: Configuration, change: Config) -> Iterator[str]:
    """Both rates; the unchanged one by the whole configuration, the changed one by what was changed."""
    yield evidence(config_label(before.config) or "as it is", before)
    yield evidence(f"with {config_label(change)}", after)


def _caveat(known: str | None, found: Tried | Verification) -> str | None:
    """What is known of a change, and what it does to the samples."""
    if found.psnr_db is None:
        return known
    pixels = f"the samples differ from the unchanged ones by a PSNR of {found.psnr_db:.0f} dB"
    return f"{known}; {pixels}" if known else pixels


def _of_both(before: Config, after: Config, trials: Sequence[Trial]) -> list[Trial]:
    """The trials of rounds that hold both: their rates are of the same minutes."""
    rounds = [{trial.round for trial in trials if trial.config == config} for config in (before, after)]
    both = rounds[0] & rounds[1]
    return [trial for trial in trials if trial.round in both and trial.config in (before, after)]


def _last_failure(config: Config, trials: Sequence[Trial]) -> str:
    failures = [trial.failure for trial in trials if trial.config == config and trial.failure]
    return f"{failures[-1].kind}: {last_words(failures[-1].message)}" if failures else "no pair of trials"


LARGE_SHARE = 0.1
"""Of an epoch's time: from here on its start eats a good part of what workers or larger batches give."""

_STARTS = {"batch_size", "num_workers"}
"""What changes how long an epoch takes to start."""


def with_start_caveat(advice: Recommendation, findings: Findings) -> Recommendation:
    """The recommendation with a caveat where the start of each epoch is a large part of it; trials draw without end."""
    if advice.status != "open" or advice.basis != "measured" or not _STARTS & set(advice.change):
        return advice
    start = _start(advice, findings)
    if start is None or start.share is None or start.share < LARGE_SHARE:
        return advice
    caveat = (
        "the gain is that of the steady state: over so few samples each epoch also takes "
        f"{in_seconds(start.s_per_epoch)} to start, {in_percent(start.share)} of its time; "
        "persistent_workers=True, or a sampler that runs on, keeps most of the gain"
    )
    return replace(advice, caveat="; ".join(filter(None, (advice.caveat, caveat))))


def _start(advice: Recommendation, findings: Findings) -> EpochCost | None:
    """What each epoch of the changed configuration loses until its first batch."""
    changed = [
        trial
        for trial in (*findings.trials, *findings.remedy_trials)
        if trial.id in advice.trials and advice.change.items() <= trial.config.items()
    ]
    return next((cost for cost in epoch_costs(changed, findings.loader) if cost.name == "first_batch"), None)
