"""What a run over a script's loader says about its arguments, from a saved run with other rates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from torch.utils.data import DataLoader

from loaderbench.conclusion import conclude
from loaderbench.records import (
    Answer,
    Config,
    Failure,
    Interval,
    Judgement,
    MachineUse,
    Recommendation,
    RunRecord,
    Tried,
    Verification,
)
from loaderbench.records.words import OWN_LOADER
from loaderbench.report.document import build_document
from loaderbench.report.sections.verdict import VerdictBlock
from loaderbench.search.selection import NO_TIME, NOTHING_LEFT
from loaderbench.statistics.faster_arguments import (
    NONE_FASTER,
    NOT_DECIDED,
    NOT_TUNED,
    changed_arguments,
    undecided_pair,
    with_tuned,
)
from loaderbench.statistics.intervals import LEAST_SD, at_another_time
from loaderbench.store import read_run
from loaderbench.tuning.tuned import AS_FAST, NO_DECISION, Tuned, tuned_by
from loaderbench.tuning.words import asides

EXAMPLE = Path(__file__).parents[2] / "reports" / "examples" / "two-cores"


@pytest.fixture(scope="module")
def example() -> RunRecord:
    return read_run(EXAMPLE)


NOISE = (0.5, 1.0, 2.0)
"""Factors of the rates in three rounds, with which no difference is significant."""


def tied(run: RunRecord, other: float, noise: tuple[float, ...] = NOISE) -> RunRecord:
    """The baseline at 100 samples/s, and another configuration that is `other` on average over the rounds."""
    assert run.best is not None
    base = next(one for one in run.configurations if one.config == run.plan.baseline)
    else_ = next(one for one in run.configurations if one.config != run.plan.baseline)
    wide = [
        replace(one, samples_per_s=Interval(rate, 20, 400), tied_with_best=True)
        for one, rate in ((base, 100.0), (else_, other))
    ]
    rates = {
        trial.id: rate
        for one, rates in ((base, [100.0] * 3), (else_, [other * factor for factor in noise]))
        for trial, rate in zip((t for t in run.sweep if t.config == one.config), rates, strict=True)
    }
    trials = tuple(replace(trial, samples_per_s=rates[trial.id]) for trial in run.sweep if trial.id in rates)
    best = replace(run.best, config=base.config, gain=Interval(1.0, 1.0, 1.0))
    return replace(run, configurations=tuple(wide), trials=trials, best=best, verification=None)


def test_a_difference_hidden_by_noise_is_not_decided(example: RunRecord) -> None:
    run = tied(example, 157)
    found = tuned_by(run, {"num_workers": 0}, Path())
    assert not found.is_decided
    assert found.arguments == {"num_workers": 0}
    assert f"may be faster (+57%), but within the noise of {run.plan.rounds} rounds" in found.why_none
    assert all(f"{axis}={value!r}" in found.why_none for axis, value in run.configurations[1].config.items())


def test_more_rounds_are_asked_for_where_they_may_show_a_gain(example: RunRecord) -> None:
    run = tied(example, 157)
    base, other = run.configurations
    assert undecided_pair(run) == (base.config, other.config)
    assert undecided_pair(tied(example, 104)) == ()
    assert undecided_pair(replace(run, best=None)) == ()
    assert undecided_pair(example) == (), "its gain is known"


def of_script(run: RunRecord) -> RunRecord:
    return replace(run, suite={**run.suite, "dataset": {"kind": "target", "target": OWN_LOADER}})


def next_step(run: RunRecord) -> str:
    (found,) = build_document(with_tuned(of_script(run))).all(VerdictBlock)
    assert found.next_step is not None
    assert found.next_step.fix is None
    return found.next_step.do


@pytest.mark.parametrize("noise", [NOISE, (0.98, 1.0, 1.02)])
def test_the_page_names_the_arguments_that_the_terminal_prints(example: RunRecord, noise: tuple[float, ...]) -> None:
    run = tied(example, 157, noise)
    found = tuned_by(run, {**run.loader, **run.plan.baseline}, Path())
    if found.gain is None:
        assert next_step(run) == "Tune again with a longer budget"
    else:
        named = ", ".join(f"{name}={value!r}" for name, value in found.changed.items() if name != "batch_size")
        assert next_step(run).startswith(f"Set {named} in the script: +57% vs current arguments (")


def test_the_arguments_are_in_the_run_as_well(example: RunRecord) -> None:
    run = tied(example, 157, noise=(0.98, 1.0, 1.02))
    found, none = with_tuned(of_script(run)).tuned, with_tuned(of_script(tied(example, 60)))
    assert found is not None
    assert found.change == {"num_workers": found.config["num_workers"]}
    assert (found.pairs, found.by_fixes, round(found.gain.est, 2)) == (3, False, 1.57)
    assert (none.tuned, none.not_measured["tuned"]) == (None, NONE_FASTER)
    undecided = with_tuned(of_script(tied(example, 157)))
    assert (undecided.tuned, undecided.not_measured["tuned"]) == (None, NOT_DECIDED)
    assert with_tuned(run).not_measured["tuned"] == NOT_TUNED


def test_the_page_says_to_keep_the_arguments_if_none_are_faster(example: RunRecord) -> None:
    assert next_step(tied(example, 60)) == "Keep the current arguments"


def test_no_flag_of_run_is_advised_for_a_script(example: RunRecord) -> None:
    """A worker count of the sweep that is neither a gain nor a loss."""
    run = tied(example, 157)
    reasons = {
        script: " ".join(one.reason or "" for one in conclude(found).recommendations)
        for script, found in ((False, run), (True, of_script(run)))
    }
    assert "Try --rounds 6 or a quieter machine" in reasons[False]
    assert "--rounds" not in reasons[True]
    assert "Try a longer budget or a quieter machine" in reasons[True]


def test_the_rounds_that_both_have_are_counted(example: RunRecord) -> None:
    run = tied(example, 157)
    *_, last = (one for one in run.trials if one.role == "sweep" and one.config == run.configurations[1].config)
    fewer = replace(run, trials=tuple(one for one in run.trials if one is not last))
    assert f"within the noise of {run.plan.rounds - 1} rounds" in tuned_by(fewer, {"num_workers": 0}, Path()).why_none


def test_a_significant_gain_of_another_than_the_best_is_taken(example: RunRecord) -> None:
    """The best can be a cheaper tie with a noisy trial."""
    run = tied(example, 157, noise=(0.98, 1.0, 1.02))
    found = tuned_by(run, {"num_workers": 0}, Path())
    assert (found.is_decided, found.pairs) == (True, 3)
    assert found.arguments["num_workers"] == run.configurations[1].config["num_workers"]
    assert found.gain is not None
    assert found.gain.est == pytest.approx(1.57, rel=0.01)
    assert undecided_pair(run) == ()


def test_after_more_rounds_than_planned_a_gain_is_held_to_a_stricter_level(example: RunRecord) -> None:
    """Three rounds in which the interval of 95% excludes 1, and that of 98.3% does not."""
    run = tied(example, 110, noise=(0.967, 1.0, 1.034))
    assert tuned_by(run, {"num_workers": 0}, Path()).is_decided
    later = replace(run, plan=replace(run.plan, rounds=2))
    assert not tuned_by(later, {"num_workers": 0}, Path()).is_decided


@pytest.mark.parametrize("other", [60, 104])
def test_slower_or_practically_as_fast_is_decided(example: RunRecord, other: float) -> None:
    found = tuned_by(tied(example, other), {"num_workers": 0}, Path())
    assert (found.is_decided, found.why_none) == (True, AS_FAST)


def test_without_a_comparison_nothing_is_decided(example: RunRecord) -> None:
    found = tuned_by(replace(tied(example, 157), best=None), {"num_workers": 0}, Path())
    assert (found.is_decided, found.why_none) == (False, f"{NO_DECISION}; use a longer budget")


def test_one_with_too_few_rounds_to_win_may_be_faster(example: RunRecord) -> None:
    run = tied(example, 157)
    base, other = run.configurations
    found = tuned_by(replace(run, configurations=(base, replace(other, tied_with_best=False))), {}, Path())
    assert not found.is_decided
    assert "may be faster" in found.why_none


def test_failures_are_named_where_nothing_could_be_compared(example: RunRecord) -> None:
    failed = [
        replace(trial, status="failed", failure=Failure("error", "ValueError: planted\nmore", ""))
        for trial in example.sweep
    ]
    run = replace(tied(example, 157), best=None, trials=tuple(failed))
    assert tuned_by(run, {}, Path()).why_none == f"{NO_DECISION}; {len(failed)} trials failed: ValueError: planted"


@pytest.mark.parametrize(
    ("own", "busy", "others"), [(0.6, 1.9, 1.3), (1.9, 2.0, None), (0.6, 1.6, None), (1.0, 1.05, None)]
)
def test_cpus_that_other_programs_used_are_told_where_trials_lacked_them(
    example: RunRecord, own: float, busy: float, others: float | None
) -> None:
    use = MachineUse(cpus=2, own_cpus=own, busy_cpus=busy, throttled_share=0.0)
    sweep = tuple(replace(trial, machine=use) for trial in example.sweep)
    found = tuned_by(replace(tied(example, 60), trials=sweep), {}, Path())
    assert found.others_cpus == (None if others is None else pytest.approx(others))
    assert (found.is_decided, found.holds_later) == (True, others is None)


def test_without_workers_what_needs_them_is_left_out() -> None:
    present: Config = {"num_workers": 4, "prefetch_factor": 4, "persistent_workers": True}
    found = Tuned(present=present, arguments={"num_workers": 0})
    assert found.changed == {"num_workers": 0, "prefetch_factor": None, "persistent_workers": False}


BASE: Config = {"num_workers": 0}
TWO: Config = {"num_workers": 2}


def fix(
    change: Config, answer: Answer, est: float, pairs: int, against: Config = BASE, *, accepted: bool = False
) -> Tried:
    ratio = Interval(est, None, None) if pairs == 1 else Interval(est, 0.9 * est, 1.1 * est)
    id_ = "+".join(change)
    return Tried(id=id_, change=change, against=against, accepted=accepted, judgement=Judgement(answer, ratio, pairs))


def with_fixes(
    run: RunRecord, *tried: Tried, whole: Answer | None = None, ended: str = NO_TIME, present: Config = BASE
) -> RunRecord:
    """A run whose sweep found nothing faster, and where these were tried on top of `present`."""
    config = dict(present)
    for one in tried:
        config |= one.change if one.accepted else {}
    compared = None if whole is None else Judgement(whole, Interval(1.8, 1.7, 1.9), 5)
    found = Verification(present=present, config=config, tried=tried, ended=ended, whole=compared)
    slower = tied(run, 60)
    assert slower.best is not None
    base, _ = slower.configurations
    configurations = tuple(
        replace(one, config=config) for one, config in zip(slower.configurations, (BASE, TWO), strict=True)
    )
    return replace(
        slower,
        suite={},
        trials=tuple(replace(one, config=BASE if one.config == base.config else TWO) for one in slower.trials),
        plan=replace(run.plan, baseline=BASE),
        configurations=configurations,
        best=replace(slower.best, config=BASE),
        verification=found,
    )


def test_an_undecided_fix_that_may_be_faster_is_no_decision(example: RunRecord) -> None:
    threads, order = fix({"worker_threads": 1}, "undecided", 1.2, 3), fix({"in_order": False}, "undecided", 2.5, 1)
    found = tuned_by(with_fixes(example, threads, order), BASE, Path())
    assert (found.arguments, found.is_decided) == (BASE, False)
    assert found.why_none == (
        "in_order=False may be faster (2.5\N{MULTIPLICATION SIGN} after 1 pair), undecided; use a longer budget"
    )
    (line,) = asides(found)
    assert line == (
        "May be faster: worker_threads=1: +20% vs current arguments (2\N{EN DASH}39%), 3 pairs, undecided. "
        "Use a longer budget to find out"
    )


@pytest.mark.parametrize(("answer", "est"), [("undecided", 0.7), ("undecided", 1.04), ("no gain", 1.01), ("loss", 0.5)])
def test_fixes_without_a_gain_leave_it_decided(example: RunRecord, answer: Answer, est: float) -> None:
    found = tuned_by(with_fixes(example, fix({"in_order": False}, answer, est, 5)), BASE, Path())
    assert (found.is_decided, found.why_none, found.left) == (True, AS_FAST, ())


def test_a_gain_on_top_of_other_arguments_that_was_not_compared_is_no_decision(example: RunRecord) -> None:
    gained = fix({"in_order": False}, "gain", 1.5, 5, TWO, accepted=True)
    found = tuned_by(with_fixes(example, gained, whole="undecided", present=TWO), BASE, Path())
    assert (found.arguments, found.is_decided) == (BASE, False)
    assert found.why_none == (
        "num_workers=2, in_order=False was faster than num_workers=2 (+50%, 5 pairs), "
        "but was not compared with the current arguments often enough; use a longer budget"
    )


def test_a_gain_over_the_present_arguments_is_the_answer_where_all_together_were_not_compared(
    example: RunRecord,
) -> None:
    first = fix({"worker_threads": 1}, "gain", 1.5, 5, accepted=True)
    second = fix({"in_order": False}, "gain", 1.2, 5, {**BASE, "worker_threads": 1}, accepted=True)
    found = tuned_by(with_fixes(example, first, second, whole="undecided"), BASE, Path())
    assert first.judgement is not None
    assert first.judgement.ratio is not None
    assert (found.changed, found.pairs) == ({"worker_threads": 1}, 5)
    assert found.gain == at_another_time(first.judgement.ratio, 5, LEAST_SD)
    assert found.is_decided
    (line,) = asides(found)
    assert line.startswith("Also faster: in_order=False: +20% vs worker_threads=1 (0\N{EN DASH}42%), 5 pairs. ")


def test_a_gain_that_there_was_no_time_to_combine_is_named(example: RunRecord) -> None:
    first = fix({"worker_threads": 1}, "gain", 1.8, 5, accepted=True)
    alone = fix({"in_order": False}, "gain", 1.5, 5)
    run = with_fixes(example, first, alone, whole="gain")
    (line,) = asides(tuned_by(run, BASE, Path()))
    assert line == (
        "Also faster: in_order=False: +50% vs current arguments (25\N{EN DASH}77%), 5 pairs. "
        "A longer budget may combine it with other changes"
    )
    in_vain = fix({"in_order": False}, "no gain", 1.01, 5, first.config)
    assert list(asides(tuned_by(with_fixes(example, first, alone, in_vain, whole="gain"), BASE, Path()))) == []
    gone = with_fixes(example, first, alone, whole="gain", ended=NOTHING_LEFT)
    assert list(asides(tuned_by(gone, BASE, Path()))) == []


def test_another_value_of_what_the_answer_sets_is_not_named(example: RunRecord) -> None:
    taken = fix({"worker_threads": 1}, "gain", 1.8, 5, accepted=True)
    other = replace(fix({"worker_threads": 2}, "gain", 1.5, 5), id="other")
    assert tuned_by(with_fixes(example, taken, other, whole="gain"), BASE, Path()).left == ()


def advice(id_: str, change: Config, caveat: str | None, *costs: str, measured: bool = True) -> Recommendation:
    basis = "measured" if measured else "heuristic"
    return Recommendation(
        id=id_, title=id_, change=change, basis=basis, gain=None, status="open", caveat=caveat, costs=costs
    )


def test_caveats_and_costs_of_what_is_to_be_changed_come_once(example: RunRecord) -> None:
    order = fix({"in_order": False}, "gain", 1.5, 5, accepted=True)
    found = (
        advice("out_of_order", {"in_order": False}, "Batch order differs", "10 MiB more RAM"),
        advice("the_same", {"in_order": False}, "Batch order differs", "10 MiB more RAM", measured=False),
        advice("another", {"worker_threads": 1}, "Of what is not changed", "Another cost"),
        advice("in_code", {}, "Of the code"),
        replace(advice("closed", {"in_order": False}, "Of what gained nothing"), status="already_ok"),
    )
    tuned = tuned_by(replace(with_fixes(example, order), recommendations=found), BASE, Path())
    assert list(asides(tuned)) == ["Caveat: Batch order differs", "Costs: 10 MiB more RAM"]
    kept = replace(with_fixes(example, replace(order, accepted=False, judgement=None)), recommendations=found)
    assert list(asides(tuned_by(kept, BASE, Path()))) == []


def test_all_changes_together_have_the_caveats_of_their_measured_parts(example: RunRecord) -> None:
    threads = fix({"worker_threads": 1}, "gain", 1.5, 5, accepted=True)
    order = fix({"in_order": False}, "gain", 1.2, 5, {**BASE, "worker_threads": 1}, accepted=True)
    first, second = (
        advice("library_threads", {"worker_threads": 1}, "First"),
        advice("out_of_order", {"in_order": False}, "Second"),
    )
    whole = advice("combination", {"worker_threads": 1, "in_order": False}, "First. Second")
    run = with_fixes(example, threads, order, whole="gain")
    together = tuned_by(replace(run, recommendations=(whole, first, second)), BASE, Path())
    assert together.caveats == ("First. Second",)
    assert tuned_by(replace(run, recommendations=(first, second)), BASE, Path()).caveats == ("First", "Second")


@pytest.mark.parametrize(
    ("present", "wanted", "changed"),
    [
        ({"num_workers": 0}, {"num_workers": 2, "prefetch_factor": 2}, {"num_workers": 2}),
        (
            {"num_workers": 4, "prefetch_factor": 4, "persistent_workers": True},
            {"num_workers": 0, "prefetch_factor": None, "persistent_workers": None},
            {"num_workers": 0, "prefetch_factor": None, "persistent_workers": False},
        ),
        ({"num_workers": 4}, {"num_workers": 0}, {"num_workers": 0, "prefetch_factor": None}),
        ({"num_workers": 0, "prefetch_factor": None}, {"num_workers": 0, "prefetch_factor": 2}, {}),
    ],
)
def test_what_has_to_be_set_is_accepted_by_torch(present: Config, wanted: Config, changed: Config) -> None:
    found = changed_arguments(present, wanted)
    assert found == changed
    DataLoader([1], **{**present, **found})  # type: ignore[arg-type]


def test_options_of_workers_are_apart_from_the_arguments(example: RunRecord) -> None:
    run = tied(example, 157, noise=(0.98, 1.0, 1.02))
    base, other = run.configurations
    config = {**other.config, "worker_threads": 1}
    trials = tuple(replace(one, config=config) if one.config == other.config else one for one in run.trials)
    run = replace(run, configurations=(base, replace(other, config=config)), trials=trials)
    found = with_tuned(of_script(run)).tuned
    assert found is not None
    assert (found.change, found.worker_options) == ({"num_workers": 1}, {"worker_threads": 1})
    assert "num_workers=1, worker_threads=1 in the script" in next_step(run)


def test_a_page_that_is_not_complete_has_no_next_step(example: RunRecord) -> None:
    (found,) = build_document(replace(of_script(tied(example, 60)), in_progress=True)).all(VerdictBlock)
    assert found.next_step is None
