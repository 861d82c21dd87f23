import io
import math
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
import run_factory as runs
import run_profiles as profiles
from rich.console import Console
from run_hostile import hostile, surrogates
from run_recorded import NAMES, recorded

from loaderbench.records import Failure, RunRecord
from loaderbench.report.document import build_document
from loaderbench.report.terminal import print_summary


def printed(run: RunRecord, *, terminal: bool = False, width: int = 80, **options: Any) -> str:
    """What is printed; `options` are those of `print_summary`."""
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=width, color_system=None)
    print_summary(build_document(run), console, **{"report_path": Path("reports/images/report.html"), **options})
    return out.getvalue()


def test_a_program_gets_one_line_for_each_configuration_however_narrow_it_says_it_is() -> None:
    lines = printed(runs.gpu_run(), width=20).splitlines()
    start = next(i for i, line in enumerate(lines) if "Samples/s" in line)

    assert lines[start + 1].startswith("\u2605")
    assert all("%" in line for line in lines[start + 1 : start + 7])
    why = "the fewest workers of two configurations that cannot be told apart"
    assert lines[start + 7 : start + 9] == [f"\u2605 recommended: {why}   \u2248 tied with it", ""]


def test_columns_are_aligned_without_any_box() -> None:
    text = printed(runs.typical())
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if "Samples/s" in line)

    assert len({len(line.removesuffix("  baseline")) for line in lines[start : start + 6]}) == 1
    assert not set(text) & set("\u2500\u2501\u2502\u2503\u256d\u2570")


def test_the_summary_has_the_verdict_the_advice_the_warnings_and_where_the_report_lies() -> None:
    text = printed(runs.typical())

    assert text.startswith("INPUT-BOUND (high confidence): The consumer waits for data 79%")
    assert "\nFixes, measured\n 1. Use two workers and a batch size of 128" in text
    assert "  3.9\u00d7 vs baseline (" in text
    assert "The reference decode varied by 14%" in text
    assert text.rstrip().endswith("Report: reports/images/report.html")


def test_notes_are_said_in_the_terminal_that_asks_for_more() -> None:
    left_out = "left out 2 files that cannot be decoded: a/b.jpg: OSError: truncated"
    text = printed(replace(runs.gpu_run(), notes=(left_out,)), verbose=True)

    assert "\nNotes\n  left out 2 files that cannot be decoded: a/b.jpg" in text
    assert "Notes" not in printed(replace(runs.gpu_run(), notes=(left_out,)))
    assert "Notes" not in printed(replace(runs.gpu_run(), notes=()), verbose=True)


def test_all_warnings_are_said_in_the_terminal_that_asks_for_more() -> None:
    said = [f"{what} varied over the run" for what in ("The clock", "The disk", "The memory")]
    run = replace(runs.typical(), warnings=tuple(said))

    assert [line for line in printed(run, verbose=True).splitlines() if "varied" in line] == [
        f"Warning: {text}" for text in said
    ]
    assert "2 more warnings in the report\n" in printed(run)
    assert "2 more warnings with -v or in the report\n" in printed(run, verbose_flag="-v")
    assert "2 more warnings with -v\n" in printed(run, verbose_flag="-v", report_path=None)


def test_all_failures_are_said_in_the_terminal_that_asks_for_more() -> None:
    run = runs.all_failed()
    kinds = ("worker_killed", "oom", "timed_out", "transform_failed")
    trials = tuple(replace(t, failure=Failure(kinds[i % 4], "", "Look at it.")) for i, t in enumerate(run.trials))
    failed = replace(run, trials=trials)

    for kind in kinds:
        assert f"{kind.replace('_', ' ')} (2 trials)" in printed(failed, verbose=True)
    assert "more in the report" in printed(failed)
    assert "more in the report" not in printed(failed, verbose=True)


def test_a_predicted_gain_has_a_heading_of_its_own() -> None:
    lines = printed(runs.typical(), verbose=True).splitlines()
    place = lines.index("Fixes, predicted (not run)")
    assert "Decode with torchvision.io on tensors" in lines[place + 1]
    of_unknown = lines.index("Fixes, not measured (gain unknown)")
    assert place < of_unknown
    assert "Prefetch four batches" in lines[of_unknown + 1]


def test_square_brackets_are_text_and_no_markup() -> None:
    found = replace(runs.typical().recommendations[0], title="Set [bold]x[/bold]=2")
    assert "[bold]x[/bold]" in printed(replace(runs.typical(), recommendations=(found,)), terminal=True, width=120)


def test_a_terminal_gets_a_table_with_at_most_five_configurations() -> None:
    text = printed(runs.gpu_run(), terminal=True, width=140)

    assert "\u2605" in text
    assert sum("GiB" in line or "%  " in line for line in text.splitlines()) <= 6


def test_a_run_without_a_measurement_lists_its_causes() -> None:
    text = printed(runs.all_failed())

    assert "shared memory full (7 trials): RuntimeError: unable to allocate shared memory(shm)" in text
    assert "\n    Run the container with --shm-size=2g, or use fewer workers.\n    log: logs/r1-c06.log\n" in text
    assert "worker killed (1 trial): Killed.\n" in text
    assert "failed: none of 8 trials measured" in text
    assert "Samples/s" not in text


def test_strings_from_outside_cannot_steer_the_terminal() -> None:
    assert "\x1b" not in printed(hostile())


def test_an_output_that_knows_ascii_only_is_written_in_ascii() -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    print_summary(build_document(runs.typical()), Console(file=out, force_terminal=False, width=80))
    out.flush()

    assert b"844 (819-869)" in raw.getvalue()


def table(text: str) -> list[str]:
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if "Samples/s" in line)
    return list(
        takewhile(
            lambda line: line and not line.startswith(("\u2605 recommended", "\u2248 tied with")), lines[start + 1 :]
        )
    )


@pytest.mark.parametrize("rank", [1, 3, 8])
def test_the_best_stands_first_and_the_others_follow_by_rank(rank: int) -> None:
    run = runs.cheapest_is_best(rank)
    rows = table(printed(run))
    rates = {c.rank: f"{c.samples_per_s.est:.0f} (" for c in run.configurations if c.samples_per_s}
    baseline = next(c.rank for c in run.configurations if c.config == run.baseline.config)
    best = [rank, *(other for other in range(1, 9) if other != rank)][:5]
    expected = best if baseline in best else [*best, baseline]

    assert [row[0] for row in rows].count("\u2605") == 1
    assert rows[0].startswith("\u2605")
    assert all(rates[place] in row for place, row in zip(expected, rows, strict=True))


@pytest.mark.parametrize("run", [runs.gpu_run(), runs.cheapest_is_best(1), runs.cheapest_is_best(8)])
def test_the_baseline_is_in_the_table_and_labeled_at_any_rank(run: RunRecord) -> None:
    rows = table(printed(run))
    labeled = [row for row in rows if row.endswith("  baseline")]
    rate = next(c.samples_per_s for c in run.configurations if c.config == run.baseline.config)
    assert rate
    assert len(labeled) == 1
    assert f"{rate.est:.0f} (" in labeled[0]


def test_a_baseline_that_is_tied_is_labeled_too() -> None:
    run = runs.cheapest_is_best(3)
    second = next(c for c in run.configurations if c.rank == 2)
    tied = replace(run, baseline=replace(run.baseline, config=second.config))
    (labeled,) = [row for row in table(printed(tied)) if row.endswith("  baseline")]
    assert labeled.startswith("\u2248")


def test_the_legend_names_only_marks_that_occur() -> None:
    text = printed(runs.cheapest_is_best(1))

    assert "\n\u2605 recommended: " in text
    assert "tied with it" not in text


def test_without_a_best_nothing_is_tied_with_it() -> None:
    for terminal in (False, True):
        text = printed(runs.without_best(), terminal=terminal)
        rows = table(printed(runs.without_best()))

        assert not [row for row in rows if row[0] != " "]
        assert not [line for line in text.splitlines() if line.lstrip().startswith(("\u2248", "\u2605"))]
        assert "recommended" not in text


def test_a_failure_of_many_lines_keeps_the_line_with_its_type() -> None:
    run = runs.all_failed()
    message = "Traceback:\nmy.OddError: the shapes differ\n" + "  [3, 224, 224]\n" * 200
    trials = tuple(replace(t, failure=Failure("transform_failed", message, "Look at it.")) for t in run.trials)

    assert "transform failed (8 trials): my.OddError: the shapes differ\n    Look at it.\n    log: " in printed(
        replace(run, trials=trials)
    )


def test_what_was_not_run_does_not_widen_the_table() -> None:
    run = runs.typical()
    last = replace(
        run.configurations[-1],
        samples_per_s=None,
        data_wait_share=None,
        rank=None,
        not_measured={"samples_per_s": "not run", "data_wait_share": "every trial failed, and this is long"},
    )
    kept = replace(run, configurations=(*run.configurations[:4], last))
    text = printed(kept)

    assert "not run" in table(text)[-1]
    assert "not measured:" not in text
    assert "and this is long" not in text


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("terminal", [False, True])
def test_names_that_are_no_unicode_can_be_printed(encoding: str, terminal: bool) -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding=encoding)
    console = Console(file=out, force_terminal=terminal, width=100)
    print_summary(build_document(surrogates()), console, report_path="caf\udce9/report.html")
    out.flush()

    assert b"Report: caf?/report.html" in raw.getvalue()


def test_the_terminal_gets_plain_spaces_and_dashes() -> None:
    assert not set(printed(runs.typical())) & set("\u00a0\u2060")


def test_the_command_to_type_next_is_one_line_for_a_program_that_reads_it() -> None:
    run = runs.typical()
    untried = replace(run.recommendations[0], basis="heuristic", gain=None)
    assert "\nNext: Measure the first fix: loaderbench run " in printed(replace(run, recommendations=(untried,)))


def test_a_run_in_which_only_trials_failed_counts_them_once() -> None:
    assert "trials failed" in printed(recorded("run_pruned"))
    assert "Run complete" not in printed(recorded("run_pruned"))


PROFILE = """\
INPUT-BOUND (medium confidence): too few workers: 4 busy; decode is the largest stage (63% of CPU time)
Loader: DataLoader over ImageFolder
Throughput: 512 samples/s
Medium confidence: a profile is one process, so it has no interval

Fixes, not measured (gain unknown)
 1. Set num_workers=8
 2. Set persistent_workers=True

Why
  Decode     63% of CPU time per sample; CPUs busy: not known
  Data wait  41% of step time; input-bound at 5% or more
  Workers    71% on a CPU, 20% waiting for a CPU, 9% blocked

Mean time per sample in a worker, 9,600 samples
  Stage                   Wall, ms  CPU, ms   Share
  read                        0.91     0.12   12.1%
  decode                      4.17     4.02   55.2%
  transform                   1.31     1.24   17.4%
  augment with noise          0.74     0.71    9.8%
  other __getitem__ code      0.04     0.03    0.5%
  collate                     0.38     0.31    5.0%
  Total                       7.55     6.43  100.0%

Next: Apply the first fix (code in the report), then profile the loop again
Report: reports/images/report.html
"""


@pytest.mark.parametrize("name", NAMES)
def test_a_summary_has_at_most_31_lines_of_100_columns(name: str) -> None:
    lines = printed(recorded(name), terminal=True, width=100).splitlines()
    assert sum(max(1, math.ceil(len(line) / 100)) for line in lines) <= 31, "\n".join(lines)
    to_copy = [line for line in lines if line.startswith("Next: ") and "loaderbench run " in line]
    assert max(len(line) for line in lines if line not in to_copy) <= 100


def test_more_is_said_of_a_profile_to_who_asks_for_it() -> None:
    more = printed(profiles.traced(), verbose=True)
    for said in (
        "    RandomResizedCrop",
        "photo_0001.jpg",
        "Workers: 71% on a CPU",
        "Profiling overhead: 3.10",
        "optimizer",
    ):
        assert said in more
        assert said not in PROFILE


def test_a_profile_is_told_from_its_step_down_to_its_samples() -> None:
    assert printed(profiles.traced()) == PROFILE


def test_a_profile_in_a_terminal_has_the_same_lines_between_rules() -> None:
    text = printed(profiles.traced(), terminal=True, width=120)
    found = [" ".join(line.split()) for line in text.splitlines() if set(line) - set(" \u2500")]

    assert found == [" ".join(line.split()) for line in PROFILE.splitlines() if line]


def test_what_a_profile_did_not_measure_is_one_line_with_its_reason() -> None:
    text = printed(profiles.untraced())

    assert f"Sample time in the workers: not measured: {profiles.NO_TRACE}\n" in text
    assert text.count(profiles.NO_TRACE) == 1


def test_a_profile_without_batches_says_what_to_do() -> None:
    text = printed(profiles.nothing_measured())

    assert (
        "UNKNOWN (low confidence): nothing was measured: ValueError: the loop took no batch after its warm-up\n" in text
    )
    assert "\n    Let the loop run on, or lower warmup.\n" in text
    assert "Profiling overhead" not in text


def test_names_of_a_profile_cannot_steer_the_terminal_and_fit_a_line() -> None:
    text = printed(profiles.hostile_profile())

    assert not set(text) & set("\x1b\u202e")
    assert max(map(len, text.splitlines())) < 700


def test_a_profile_can_be_written_in_ascii() -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    print_summary(build_document(profiles.traced()), Console(file=out, force_terminal=False, width=80), verbose=True)
    out.flush()

    assert b"per sample in a worker" in raw.getvalue()
    assert b"3.10 us per batch" in raw.getvalue()


def test_an_unfinished_run_is_resumed_before_a_fix_is_tried() -> None:
    unfinished = replace(runs.typical(), complete=False, in_progress=True, suite_file="s.yaml")
    out = io.StringIO()
    document = build_document(unfinished, folder=Path("reports/a b"))
    print_summary(document, Console(file=out, width=200, color_system=None))
    step = "Next: If the run has stopped, resume it: loaderbench run s.yaml --resume 'reports/a b'\n"
    assert step in out.getvalue()
    assert "Next" in printed(replace(unfinished, complete=True, in_progress=False))
    assert "resume" not in printed(replace(unfinished, complete=True, in_progress=False))


def test_what_to_change_in_the_configuration_is_shown_without_being_a_warning() -> None:
    said = "shuffle=true has no effect"
    run = replace(runs.typical(), setup_notes=(said,), warnings=())
    assert f"\nNote: {said}" in printed(run)
    assert f"\nNotes\n  {said}" in printed(run, verbose=True)
    assert f"Warning: {said}" not in printed(run)


def test_a_terminal_gets_the_command_to_type_and_the_path_of_the_report_in_one_line_each() -> None:
    run = runs.typical()
    untried = replace(run.recommendations[0], basis="heuristic", gain=None)
    page = Path("reports") / ("long-name-" * 8) / "report.html"
    text = printed(replace(run, recommendations=(untried,)), terminal=True, report_path=page)
    (step,) = [line for line in text.splitlines() if line.startswith("Next: Measure the first fix: loaderbench run ")]
    assert len(step) > 80
    assert step.endswith("--rounds 6 --no-verify")
    assert f"\nReport: {page}\n" in text
