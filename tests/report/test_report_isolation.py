"""How isolation runs are shown, in the report and in a terminal."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
import run_factory as runs
from blocks import glance, section, within
from rich.console import Console

from loaderbench.records import (
    Ceiling,
    Config,
    Contention,
    Interval,
    Isolation,
    IsolationRun,
    Reasons,
    RunRecord,
    SampleTimes,
    SlowSample,
    Spread,
)
from loaderbench.report import numbers
from loaderbench.report.document import build_document
from loaderbench.report.html import render_html
from loaderbench.report.model import Breakdown
from loaderbench.report.sections.trials import without_folders
from loaderbench.report.terminal import print_summary

CONFIG: Config = {"batch_size": 32, "num_workers": 2, "pin_memory": False}


def rung(name: Any, ms: float | None, why: str = "") -> IsolationRun:
    time_s = None if ms is None else runs.spread(ms / 1e3)
    rate = None if ms is None else runs.spread(32e3 / ms)
    reasons: Reasons = dict.fromkeys(("time_s", "samples_per_s"), why) if why else {}
    return IsolationRun(name=name, time_s=time_s, samples_per_s=rate, trials=(), not_measured=reasons)


def taken_apart(config: Config = CONFIG) -> RunRecord:
    run = runs.typical()
    ladder = Isolation(
        config=config,
        per="batch",
        rounds=3,
        runs=(
            rung("replay_device", None, "there is no accelerator"),
            rung("replay_host", 12.5),
            rung("loader_warm", 31.0),
            rung("loader_cold", 35.5),
            rung("end_to_end", 39.4),
        ),
        transfer_s=None,
        fetch_s=Interval(0.0045, -0.0008, 0.0098),
        interference_s=Interval(0.0081, 0.0071, 0.0091),
        notes=("16 batches were kept and replayed",),
        not_measured={"transfer_s": "there is no accelerator"},
    )
    contention = tuple(
        Contention(
            workers=workers,
            wall_s_per_sample=runs.spread(0.002 * workers),
            cpu_s_per_sample=runs.spread(0.002),
            wall_ratio=ratio,
            cpu_ratio=ratio and Interval(1.2, 1.1, 1.3),
            beyond_cores=ratio,
            not_measured={} if ratio else dict.fromkeys(("wall_ratio", "cpu_ratio", "beyond_cores"), "the others"),
        )
        for workers, ratio in ((1, None), (2, Interval(2.0, 1.9, 2.1)))
    )
    ceiling = Ceiling(
        samples_per_s=2560.0,
        headspace=0.68,
        basis="cached batches replayed, 3 rounds",
        samples_per_s_interval=Interval(2560.0, 2500.0, 2620.0),
    )
    return replace(run, isolation=ladder, contention=contention, ceiling=ceiling, consumer="target")


def printed(run: RunRecord) -> str:
    out = io.StringIO()
    print_summary(build_document(run), Console(file=out, width=200), verbose=True)
    return out.getvalue()


def test_the_page_tells_each_part_and_why_one_is_missing() -> None:
    document = build_document(taken_apart())
    ladder, contention = within(document, "isolation", Breakdown)
    rows = ladder.tables[0].rows
    assert [row.cells[0].text for row in rows][-1] == "loader + training step"
    assert "12.5" in rows[0].cells[1].text
    assert "cached batches in GPU memory" not in [row.cells[0].text for row in rows]
    assert {fact.label: fact.value.text for fact in ladder.facts} == {
        "Host-to-device copy (host \u2212 GPU cache)": "not measured: there is no accelerator",
        "Storage cost (cold \u2212 warm)": "not significant (\u22120.8 to 9.8 ms per batch)",
        "Interference (both \u2212 the slower one alone)": "8.1 ms per batch (7.1\u20139.1 ms)",
    }
    assert ladder.notes[0].text == "16 batches were kept and replayed."
    assert [row.cells[0].text for row in contention.tables[0].rows] == ["1", "2"]
    assert ("isolation", "Isolation") in [(link.anchor, link.text.text) for link in document.links]


def test_the_full_pipeline_is_named_after_what_takes_its_batches() -> None:
    emulated = within(build_document(replace(taken_apart(), consumer="emulated")), "isolation", Breakdown)[0]
    assert [row.cells[0].text for row in emulated.tables[0].rows][-1] == "loader + emulated GPU"


def test_the_page_draws_it_in_a_section_of_its_own() -> None:
    html = render_html(build_document(taken_apart()))
    assert '<section id="isolation"' in html
    assert "cached batches in host memory" in html
    assert "Ceiling: 2,560 (2,500\u2060\u2013\u20602,620) samples/s" in html


def test_a_terminal_gets_the_rungs_that_were_measured_and_a_line_for_what_they_tell() -> None:
    text = printed(taken_apart())
    assert "Isolation runs\n" in text
    assert "batches in GPU memory" not in text
    assert "Host-to-device copy" not in text
    assert "Interference (both \u2212 the slower one alone): 8.1 ms per batch (7.1\u20139.1 ms)" in text
    assert "Ceiling: 2,560 (2,500\u20132,620) samples/s if loading were free" in text
    assert "Headroom: up to 68% less time per batch" in text
    assert "Contention (2 vs 1 worker): CPU time per sample 1.20\u00d7" in text
    assert "unexplained slowdown 2.0" in text
    assert "\u00d7): shared lock, GIL or disk" in text


def test_a_terminal_leaves_out_a_difference_whatever_the_reason_is_that_it_is_missing() -> None:
    run = taken_apart()
    assert run.isolation
    isolation = replace(run.isolation, not_measured={"transfer_s": numbers.NOT_RUN})
    assert "Host-to-device copy" not in printed(replace(run, isolation=isolation))


def test_a_run_without_a_ladder_has_no_word_of_it() -> None:
    run = runs.typical()
    document = build_document(run)
    assert (section(document, "isolation"), glance(document, "isolation")) == (None, ())
    assert 'id="isolation"' not in render_html(document)
    assert "Isolation runs" not in printed(run)


def test_without_workers_the_two_take_turns() -> None:
    found = within(build_document(taken_apart(config={**CONFIG, "num_workers": 0})), "isolation", Breakdown)[0]
    assert any("loading and training alternate" in note.text for note in found.notes)


def test_what_the_cores_explain_is_no_lock() -> None:
    run = taken_apart()
    shared = replace(run.contention[1], beyond_cores=Interval(1.02, 0.9, 1.2))
    text = printed(replace(run, contention=(run.contention[0], shared)))
    assert "unexplained slowdown not significant (0.90\u20131.20\u00d7)" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Interval(4.21, 3.1, 5.34), "4.2 ms (3.1\u20135.3 ms)"),
        (Interval(0.0123, -0.81, 1.21), "not significant (\u22120.8 to 1.2 ms)"),
        (Interval(-5.0, -6.0, -4.0), "\u22125.0 ms (\u22126.0 to \u22124.0 ms)"),
        (Interval(4.21, None, None), "4.21 ms (n = 1)"),
        (Interval(0.0, 0.0, 0.0), "not significant (0\u20130 ms)"),
    ],
)
def test_a_difference_is_none_where_its_interval_holds_0(value: Interval, text: str) -> None:
    assert numbers.difference(value, "ms").text == text


def test_a_page_that_is_passed_on_tells_no_paths_of_any_trial() -> None:
    run = taken_apart()
    slow = SlowSample(index=1, wall_s=1.0, stage="read", worker=0, path="/home/me/secret/one.jpg")
    times = SampleTimes(wall=Spread(1, 1, 1, 1, 1, 1), slowest=(slow,), tail_share=0.0)
    roles: tuple[Any, ...] = ("sweep", "twin", "isolation", "remedy")
    trials = tuple(replace(run.trials[0], role=role, sample_times=times) for role in roles)
    kept = without_folders(replace(run, trials=trials))
    assert "secret" not in repr(kept)
    assert repr(kept.trials).count("one.jpg") == len(roles)
