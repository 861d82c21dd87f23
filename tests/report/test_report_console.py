import io
from pathlib import Path

import run_factory as runs
from rich.console import Console

from loaderbench.records import RunRecord
from loaderbench.report.console import print_summary
from loaderbench.report.document import build_document


def printed(run: RunRecord, *, terminal: bool = False, width: int = 80) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=width, color_system=None)
    print_summary(build_document(run), console, report_path=Path("reports/images/report.html"))
    return out.getvalue()


def test_a_program_gets_one_line_for_each_configuration_however_narrow_it_says_it_is() -> None:
    lines = printed(runs.gpu_run(), width=20).splitlines()
    start = next(i for i, line in enumerate(lines) if "Samples/s" in line)

    assert lines[start + 1].startswith("\u2605")
    assert all("%" in line for line in lines[start + 1 : start + 6])
    assert lines[start + 6] == ""


def test_columns_are_aligned_without_any_box() -> None:
    text = printed(runs.typical())
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if "Samples/s" in line)

    assert len({len(line) for line in lines[start : start + 6]}) == 1
    assert not set(text) & set("\u2500\u2501\u2502\u2503\u256d\u2570")


def test_the_summary_has_the_verdict_the_advice_the_warnings_and_where_the_report_lies() -> None:
    text = printed(runs.typical())

    assert text.startswith("The consumer waits for data 79 %")
    assert "[measured] Use two workers and a batch size of 128: 3.9\u00d7 samples/s" in text
    assert "The reference decode varied by 14 %" in text
    assert text.rstrip().endswith("Report: reports/images/report.html")


def test_square_brackets_are_text_and_no_markup() -> None:
    assert "[measured]" in printed(runs.typical(), terminal=True)


def test_a_terminal_gets_a_table_with_at_most_five_configurations() -> None:
    text = printed(runs.gpu_run(), terminal=True, width=140)

    assert "\u2500" in text
    assert sum("GiB" in line or "%  " in line for line in text.splitlines()) <= 6


def test_a_run_without_a_measurement_lists_its_causes() -> None:
    text = printed(runs.all_failed())

    assert "shared memory full (7 trials): Run the container with --shm-size=2g" in text
    assert "Samples/s" not in text


def test_strings_from_outside_cannot_steer_the_terminal() -> None:
    assert "\x1b" not in printed(runs.hostile())


def test_an_output_that_knows_ascii_only_is_written_in_ascii() -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    print_summary(build_document(runs.typical()), Console(file=out, force_terminal=False, width=80))
    out.flush()

    assert b"844 (819-869)" in raw.getvalue()
