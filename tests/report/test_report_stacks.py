"""Stacks of the threads that load: lines with the largest shares, the flame graph, and the file for speedscope."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import run_profiles as profiles
import run_stacks as stacks
from blocks import section, within
from run_hostile import HOSTILE

from loaderbench.errors import UsageError
from loaderbench.records import CodeLooks, CountedStack, StackFrame
from loaderbench.report.document import build_document
from loaderbench.report.html import render_html
from loaderbench.report.model import Chart, Table
from loaderbench.report.speedscope import speedscope_profile, write_speedscope


def test_the_run_names_the_lines_with_the_largest_shares() -> None:
    found = stacks.profiled().hotspots
    assert [(one.function, one.file, one.line, one.stage, round(one.share, 6), one.below) for one in found] == [
        ("load", "photos.py", 30, "decode", 0.903, "ImageFile.load"),
        ("Photos.__getitem__", "photos.py", 12, "sample", 0.097, ""),
    ]
    assert stacks.profiled(None).hotspots == ()


def test_in_the_flame_graph_a_call_is_as_wide_as_all_that_it_made() -> None:
    (chart,) = within(build_document(stacks.profiled(), ()), "flame-graph", Chart)
    (trace,) = chart.figures[0]["data"]
    widths = dict(zip(trace["ids"], trace["values"], strict=True))  # of each without those below it
    for one, caller in reversed(list(zip(trace["ids"], trace["parents"], strict=True))):
        if caller:
            widths[caller] += widths[one]
    assert widths["0"] == pytest.approx(1.0)
    assert trace["labels"][:5] == ["all loading", "decode", "Photos.__getitem__", "load", "ImageFile.load"]
    assert [widths[one] for one in trace["ids"][1:5]] == pytest.approx([0.603] * 4)
    assert "lookup" not in trace["labels"]  # 0.3%
    assert trace["text"][:2] == ["100%", "60%"]


def test_the_table_below_has_what_the_flame_graph_has() -> None:
    (table,) = within(build_document(stacks.profiled(), ()), "flame-graph", Table)
    rows = [tuple(cell.text for cell in row.cells) for row in table.rows]
    assert rows[2] == ("\u00a0\u00a0\u00a0\u00a0Photos.__getitem__", "photos.py:12 image = load(path)", "60%")
    assert len(rows) == 11


@pytest.mark.parametrize("looks", [None, CodeLooks(0, (), ())])
def test_without_stacks_there_is_no_section(looks: CodeLooks | None) -> None:
    assert section(build_document(stacks.profiled(looks), ()), "flame-graph") is None


def test_names_of_calls_stay_text() -> None:
    frame = StackFrame(file=HOSTILE, line=1, function=HOSTILE, own=True, text=HOSTILE)
    run = stacks.profiled(CodeLooks(30, (frame,), (CountedStack(HOSTILE, (0,), 30),)))
    page = render_html(build_document(run, ()))
    assert HOSTILE not in page


def test_the_file_for_speedscope_has_every_look_in_its_stack() -> None:
    found = speedscope_profile(stacks.profiled())
    frames, (profile,) = found["shared"]["frames"], found["profiles"]
    named = [tuple(frames[one]["name"] for one in stack) for stack in profile["samples"]]
    assert dict(zip(named, profile["weights"], strict=True)) == {
        ("[decode]", "Photos.__getitem__", "load", "ImageFile.load"): 60,
        ("[transform]", "Photos.__getitem__", "load", "Image.resize"): 30,
        ("[sample]", "Photos.__getitem__"): 9.7,
        ("[decode]", "Photos.__getitem__", "load", "ImageFile.load", "lookup"): 0.3,
    }
    assert (profile["startValue"], profile["endValue"]) == (0, 100)
    assert {"name": "load", "file": "photos.py", "line": 30} in frames


def test_stacks_of_every_trial_of_the_configuration_count(tmp_path: Path) -> None:
    run = stacks.profiled()
    (trial,) = run.trials
    other = replace(trial, id="other", config={**trial.config, "num_workers": 7})
    swept = replace(run, kind="sweep", trials=(replace(trial, role="sweep"), replace(other, role="sweep")))
    write_speedscope(tmp_path / "stacks.json", swept)
    profile = json.loads((tmp_path / "stacks.json").read_text())["profiles"][0]
    assert profile["endValue"] == 100


def test_a_run_without_stacks_says_why() -> None:
    with pytest.raises(UsageError, match=f"no stacks were recorded: {profiles.NO_TRACE}"):
        speedscope_profile(stacks.profiled(None))
