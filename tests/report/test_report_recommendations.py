"""What was tried stands in its order, and each basis under a heading of its own."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
import run_factory as runs
from blocks import cards, downloads, folded, the
from rich.console import Console
from run_recorded import recorded

from loaderbench.conclusion import with_judgements
from loaderbench.records import (
    Config,
    Interval,
    Judgement,
    PixelChange,
    Recommendation,
    RunRecord,
    SampleTimes,
    SlowSample,
    Spread,
    Trial,
    Tried,
    Verification,
    format_scalar,
)
from loaderbench.report.document import build_document
from loaderbench.report.html import render_html
from loaderbench.report.markdown import render_markdown
from loaderbench.report.model import Breakdown, Details
from loaderbench.report.sections.recommendations import Cards
from loaderbench.report.sections.verdict import NextStep, VerdictBlock
from loaderbench.report.terminal import print_summary

PRESENT: Config = {"batch_size": 128, "num_workers": 2}
UINT8, COPIES = {"normalize": "device"}, {"presize": 256}


def trial(config: Config, number: int, rate: float) -> Trial:
    known = f"v{number:02d}-{len(config)}"
    return Trial(
        role="remedy",
        id=known,
        config=config,
        round=number,
        status="completed",
        samples_per_s=rate * (1 + number / 1000),
    )


def verified() -> RunRecord:
    """One remedy that gained and was kept, and one that was tried on top of it and gave nothing."""
    first, second = {**PRESENT, **UINT8}, {**PRESENT, **UINT8, **COPIES}
    trials = [trial(config, n, rate) for n in range(1, 6) for config, rate in ((PRESENT, 100.0), (first, 130.0))]
    trials += [trial(config, n, 130.0) for n in range(6, 11) for config in (first, second)]
    same = {"psnr_db": "identical"}
    tried = (
        Tried(id="uint8_transport", change=UINT8, against=PRESENT, accepted=True, estimate=1.4, not_measured=same),
        Tried(id="presize_offline", change=COPIES, against=first, accepted=False, psnr_db=31.7),
    )
    found = Verification(present=PRESENT, config=first, tried=tried, ended="no remedy is left")
    run = runs.typical()
    return with_judgements(replace(run, verification=found, trials=(*run.trials, *trials)))


def test_each_try_says_on_top_of_what_it_was_and_what_it_added() -> None:
    fold = next(one for one in build_document(verified()).all(Details) if one.summary == "Fixes tried, in order")
    found = fold.blocks[0]
    assert isinstance(found, Breakdown)
    kept, dropped = ([cell.text for cell in row.cells] for row in found.tables[0].rows)
    assert kept == ["uint8_transport", "normalize=device", "unmodified config", "+40%", "+30% (30\u201330%)", "5",
                    "gain, kept", "identical"]  # fmt: skip
    assert dropped[2] == "normalize=device"
    assert dropped[5:] == ["5", "no gain", "32"]
    assert [row.mark for row in found.tables[0].rows] == ["best", ""]
    assert found.notes[0].text == "Stopped: no remedy is left."


def test_samples_that_were_not_compared_say_why() -> None:
    run = verified()
    assert run.verification is not None
    tried = [replace(one, psnr_db=None, not_measured={"psnr_db": "x"}) for one in run.verification.tried]
    document = build_document(replace(run, verification=replace(run.verification, tried=tuple(tried))))
    fold = next(one for one in document.all(Details) if one.summary == "Fixes tried, in order")
    assert isinstance(fold.blocks[0], Breakdown)
    cells = [row.cells[-1] for row in fold.blocks[0].tables[0].rows]
    assert {cell.text for cell in cells} == {"not measured: x"}


def test_where_no_fix_gained_those_that_were_tried_are_named_with_their_ratio() -> None:
    run = verified()
    reason = "Tried, no gain above 10%: 0.88\u00d7 (0.73\u20131.05\u00d7)"
    fine = replace(run.recommendations[0], id="presize_offline", title="Smaller", status="already_ok", reason=reason)
    untried = replace(fine, id="pin_memory")

    def said(*found: Recommendation) -> str | None:
        return next(iter(build_document(replace(run, recommendations=found)).all(Cards))).empty

    assert said(fine, untried) == f"No fixes. Smaller: {reason}."
    assert said(untried) == "No fixes: nothing to change was found."


def test_a_fix_that_was_undecided_at_the_end_is_named_with_its_ratio_so_far() -> None:
    run = verified()
    assert run.verification is not None
    first, *others = run.verification.tried

    def said(judgement: Judgement, *found: Recommendation) -> str | None:
        open_ = replace(first, change={"num_workers": 16}, judgement=judgement, accepted=False)
        tried = replace(run.verification, tried=(open_, *others)) if run.verification else None
        page = build_document(replace(run, recommendations=found, verification=tried))
        return next(iter(page.all(Cards))).empty

    undecided = Judgement("undecided", Interval(3.9, 3.63, 4.2), 2)
    so_far = "Undecided: num_workers=16, 3.9\u00d7 (3.6\u20134.2\u00d7) in 2 pairs; 3 are needed."
    assert said(undecided) == f"No fix was confirmed. {so_far}"
    in_vain = replace(run.recommendations[0], id=others[0].id, title="Smaller", status="already_ok", reason="no gain")
    assert said(undecided, in_vain) == f"No fix was confirmed. Smaller: no gain. {so_far}"
    assert said(replace(undecided, pairs=3)).endswith("in 3 pairs.")
    no_pair = "No fix was confirmed. Undecided: num_workers=16, no complete pair."
    assert said(replace(undecided, ratio=None, pairs=0)) == no_pair
    assert said(replace(undecided, answer="gain")) == "No fixes: nothing to change was found."


def test_where_other_programs_leave_nothing_to_try_the_page_says_what_to_do() -> None:
    run = replace(runs.typical(), recommendations=(), verification=None)
    held = replace(run, verdict=replace(run.verdict, limit="neighbors"))
    found = next(iter(build_document(held).all(Cards))).empty
    assert found == "No fixes tried: other programs hold the CPUs. Stop them, then run again."


def test_a_card_compares_with_what_its_gain_is_over() -> None:
    run = verified()
    change: Config = {"num_workers": 4}
    on_top = replace(run.recommendations[0], change=change, against={**PRESENT, **UINT8, "num_workers": 2})
    (card,) = next(iter(build_document(replace(run, recommendations=(on_top,))).all(Cards))).cards
    assert [fact.value.text for fact in card.change] == ["2 \u2192 4"]
    assert "-P normalize=device" in card.command


def test_the_page_shows_it_and_a_run_without_remedies_does_not() -> None:
    assert "Fixes tried, in order" in render_html(build_document(verified()))
    assert "Fixes tried, in order" not in render_html(build_document(runs.typical()))


def test_no_folder_of_a_slow_sample_leaves_with_the_trials_of_remedies() -> None:
    slow = SlowSample(index=1, wall_s=0.1, stage="decode", worker=0, path="/secret/folder/one.jpg")
    times = SampleTimes(wall=Spread(9, 0.1, 0.1, 0.1, 0.1, 0.1), slowest=(slow,), tail_share=0.1)
    run = verified()
    assert run.verification
    trials = tuple(replace(trial, sample_times=times) for trial in run.remedy_trials)
    (as_json, _) = downloads(build_document(replace(run, trials=trials)))
    assert "secret" not in as_json.content
    assert "one.jpg" in as_json.content


def test_measured_and_advised_stand_under_headings_of_their_own() -> None:
    assert [card.heading for card in cards(build_document(runs.typical()))] == [
        "Measured in this run",
        "Predicted, not run",
        "Not measured",
    ]


def test_advice_has_a_badge_in_plain_words() -> None:
    document = build_document(runs.typical())
    assert [card.badge_text for card in cards(document)] == ["measured", "predicted", "not measured"]
    assert "badge-heuristic" in render_html(document)
    assert ">heuristic<" not in render_html(document)


OWN_RATES = "Fixes tried after the sweep ran without the emulated GPU; their rates differ from the table."


def test_rates_without_the_emulated_gpu_are_said_to_differ_from_the_table() -> None:
    document = build_document(recorded("example_two_cores"))
    shown = io.StringIO()
    print_summary(document, Console(file=shown, width=100))
    assert the(document, Cards).of_rates == OWN_RATES
    assert all(OWN_RATES in text for text in (shown.getvalue(), render_html(document), render_markdown(document)))


def test_rates_of_the_sweep_alone_need_no_explanation() -> None:
    run = recorded("example_two_cores")
    for other in (replace(run, verification=None, trials=run.sweep), replace(run, consumer="model")):
        assert the(other, Cards).of_rates is None


def test_the_page_says_what_gains_are_relative_to() -> None:
    found = the(recorded("example_two_cores"), Cards).references
    assert found is not None
    assert found.text == (
        "\u201cvs baseline\u201d: relative to the starting config (batch_size=32 num_workers=0). "
        "\u201cvs best config\u201d: relative to the recommended config of the sweep (batch_size=32 num_workers=2)."
    )


def test_what_was_tried_in_vain_is_no_card_and_is_not_called_fine() -> None:
    run = runs.typical()
    first, *rest = run.recommendations
    vain = replace(first, status="already_ok", reason="tried: no gain here, \u00d71.01 (0.99\u20131.03)")
    document = build_document(replace(run, recommendations=(vain, *rest)))
    assert [aside.value.text for aside in folded(document, "Tried, no gain")] == [vain.reason]
    assert vain.reason not in [aside.value.text for aside in folded(document, "Passed")]


@pytest.mark.parametrize(
    ("pixels", "said"),
    [
        (None, "gain not measured"),
        (PixelChange(None, "not compared"), "gain not measured; changes pixels, PSNR not measured"),
    ],
)
def test_the_next_step_says_that_its_gain_was_not_measured(pixels: PixelChange | None, said: str) -> None:
    run = runs.typical()
    untried = replace(run.recommendations[2], pixels=pixels)
    (found,) = build_document(replace(run, recommendations=(untried,))).all(VerdictBlock)
    assert found.next_step is not None
    assert found.next_step.fix.text.rstrip(".") == f"{untried.title}: {said}"


def next_step(run: RunRecord) -> NextStep:
    (found,) = build_document(run).all(VerdictBlock)
    assert found.next_step is not None
    return found.next_step


def test_a_measured_fix_is_applied_next() -> None:
    run, rate = runs.typical(), Interval(993.0, 984.0, 1_002.0)
    measured = replace(run.recommendations[0], before=rate, after=rate)
    step = next_step(replace(run, recommendations=(measured,)))
    assert step.fix is not None
    assert "993 \u2192 993 samples/s" in step.fix.text
    assert step.said("code below") == "Apply the first fix (code below)"
    assert step.command is None


def test_a_fix_that_was_not_measured_is_measured_next_by_its_command() -> None:
    run = runs.typical()
    untried = replace(run.recommendations[0], basis="heuristic", gain=None)
    step = next_step(replace(run, recommendations=(untried,)))
    assert step.do == "Measure the first fix"
    assert step.command is not None
    assert step.command.startswith("loaderbench run ")


def test_a_fix_that_was_not_measured_is_measured_on_the_configuration_of_the_verdict() -> None:
    """Its command measured the baseline, which loads without workers, where the verdict was about two of them."""
    run = runs.typical()
    assert run.best is not None
    assert run.best.config != run.baseline.config
    untried = replace(run.recommendations[0], basis="heuristic", gain=None, change={"normalize": "device"})
    with_default = {**run.suite, "dataset": {"normalize": "worker"}}
    step = next_step(replace(run, suite=with_default, recommendations=(untried,)))
    settings = [f"-P {axis}={format_scalar(value)} " for axis, value in run.best.config.items()]
    assert all(setting in (step.command or "") for setting in settings)


@pytest.mark.parametrize(("snippet", "with_code"), [("torch.set_num_threads(1)", " (code below)"), (None, "")])
def test_a_fix_that_no_sweep_can_show_is_applied_and_measured_again(snippet: str | None, with_code: str) -> None:
    run = runs.typical()
    advice = replace(run.recommendations[0], basis="heuristic", gain=None, change={}, snippet=snippet)
    assert (
        next_step(replace(run, recommendations=(advice,))).said("code below")
        == f"Apply the first fix{with_code}, then run the command again, with a new --out if it has one"
    )


def test_a_fix_that_the_first_includes_says_that_it_is_part_of_it() -> None:
    run = runs.typical()
    first = replace(run.recommendations[0], change={"num_workers": 2, "normalize": "device"})
    part, other = (replace(first, title=name, change={name: 2}) for name in ("num_workers", "prefetch_factor"))
    whole, included, apart = cards(build_document(replace(run, recommendations=(first, part, other))))
    assert [card.outcome.endswith("part of 1") for card in (whole, included, apart)] == [False, True, False]
    assert [card.evidence[-1].text == "Part of the first fix" for card in (whole, included, apart)] == [
        False,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("meets_target", "is_floor", "said"),
    [
        (True, True, "meets the target"),
        (False, True, "at the target (within 3%)"),
        (False, False, ""),
    ],
)
def test_a_fix_meets_the_target_or_is_at_it_where_that_caps_the_rate(
    meets_target: bool, is_floor: bool, said: str
) -> None:
    run = runs.typical()
    first = run.recommendations[0]
    assert first.gain
    rate = Interval(993.0, 984.0, 1_002.0)
    capped = replace(
        first, gain=replace(first.gain, is_floor=is_floor), meets_target=meets_target, before=rate, after=rate
    )
    (card,) = cards(build_document(replace(run, recommendations=(capped,))))
    assert card.outcome.partition(" \u2192 993")[2].removeprefix(", ") == said


def test_where_the_loader_keeps_up_the_next_step_is_to_keep_it() -> None:
    step = next_step(recorded("run_small"))
    assert step.fix is None
    assert step.do.startswith("Keep the loader")


def test_two_versions_have_a_result_and_no_next_step() -> None:
    """Their page has no fixes that it could link to."""
    run = replace(runs.typical(), kind="ab")
    assert any(found.status == "open" for found in run.recommendations)
    assert the(run, VerdictBlock).next_step is None


def test_a_gain_that_the_target_capped_is_at_least_its_number() -> None:
    run = runs.typical()
    first = run.recommendations[0]
    assert first.gain
    capped = replace(first, gain=replace(first.gain, is_floor=True))
    (card,) = cards(document := build_document(replace(run, recommendations=(capped,))))
    assert card.gain
    assert card.gain.main == "at least 3.9\u00d7"
    assert "at least" not in card.outcome
    assert card.gain.main in render_html(document).replace("\u2060", "").replace("\u00a0", " ")
