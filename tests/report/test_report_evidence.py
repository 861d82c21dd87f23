"""A line of evidence is placed by its subject, not by its wording."""

from __future__ import annotations

import html as entities
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import run_factory as runs
import run_profiles as profiles
from blocks import the
from rich.console import Console
from run_recorded import recorded

from loaderbench.records import RunRecord, StageCost
from loaderbench.report.document import build_document
from loaderbench.report.html import notebook_html, render_html
from loaderbench.report.markdown import render_markdown
from loaderbench.report.sections.verdict import VerdictBlock
from loaderbench.report.terminal import print_summary
from loaderbench.store import read_run, run_json


def named(stage: str) -> RunRecord:
    """A profile whose costliest stage has a name of the user's."""
    cost = {stage: StageCost(0.004, 0.004), "read": StageCost(0.001, 0.001)}
    return profiles.profile_of(replace(profiles.traced_trial(), stages=cost, sample_times=None))


def brief(run: RunRecord) -> str:
    out = io.StringIO()
    print_summary(build_document(run), Console(file=out, width=100))
    return out.getvalue()


def _notebook(run: RunRecord) -> str:
    return notebook_html(build_document(run))


def _page(run: RunRecord) -> str:
    return "".join(re.findall(r'(?s)<section id="verdict".*?</section>', render_html(build_document(run))))


@pytest.mark.parametrize("stage", ["target lookup", "aug: crop", "throughput limits", "best config", "throughput: all"])
def test_a_stage_of_the_users_own_cannot_move_the_cause(stage: str) -> None:
    run = named(stage)
    cause = run.verdict.evidence_parts[0]

    assert the(run, VerdictBlock).why[0].label == cause.label == stage[0].upper() + stage[1:]
    assert [text.text.partition(":")[0] for text in the(run, VerdictBlock).reached] == [
        "Loader",
        "Throughput",
        "Medium confidence",
    ]
    assert f"  {cause.label}  {cause.figures}\n" in brief(run)
    assert run.verdict.evidence == tuple(map(str, run.verdict.evidence_parts))


def test_throughput_limits_are_for_those_who_ask_for_more() -> None:
    run = named("decode")
    assert [reason.label for reason in the(run, VerdictBlock).why if reason.only_verbose] == [
        "Wall time",
        "Throughput limits",
    ]
    assert "Throughput limits" not in brief(run)


def test_the_stage_that_files_are_read_in_says_so_beside_its_wall_time() -> None:
    why = the(recorded("scenario_bandwidth_folder_w2"), VerdictBlock).why
    assert [one.value.text.endswith("includes reading files") for one in why if one.label == "Wall time"] == [True]


def test_a_confidence_that_is_not_high_has_its_reasons() -> None:
    reached = [text.text for text in the(recorded("scenario_bandwidth_folder_w2"), VerdictBlock).reached]
    one_process, others = (
        "a profile is one process, so it has no interval",
        "other programs use CPUs that the loader needs",
    )
    assert reached[-1] == f"Low confidence: {one_process}; {others}"
    assert not any("confidence" in text.text for text in the(recorded("run_small"), VerdictBlock).reached)


def test_a_run_from_before_evidence_had_parts_is_read_and_its_lines_are_drawn_whole(tmp_path: Path) -> None:
    fields = json.loads(run_json(named("decode")))
    del fields["verdict"]["evidence_parts"]
    (tmp_path / "run.json").write_text(json.dumps(fields))
    run = read_run(tmp_path)

    assert run.verdict.evidence_parts == ()
    assert [(one.label, one.value.text) for one in the(run, VerdictBlock).why] == [
        ("", x) for x in run.verdict.evidence
    ]
    for line in run.verdict.evidence:
        assert line.partition(": ")[2] in render_markdown(build_document(run))


def test_what_the_headline_says_is_not_said_again() -> None:
    run = profiles.nothing_measured()
    assert [part.about for part in run.verdict.evidence_parts] == ["failure"]
    assert the(run, VerdictBlock).why == ()
    assert the(runs.all_failed(), VerdictBlock).why == ()


@pytest.mark.parametrize(
    ("name", "headline", "first"),
    [
        (
            "synthetic_quiet_transport_tiny_w2",
            "the main process is busy; worker-to-main IPC is the bottleneck",
            "Worker-to-main IPC",
        ),
        (
            "run_resumed",
            "limited by CPU time; workers do not help; decode is the largest stage (56% of CPU time)",
            "Decode",
        ),
        (
            "synthetic_quiet_main_generator",
            "no workers, 1.1 CPUs free; the main process is the bottleneck",
            "Main process",
        ),
        ("run_a_rung_fails", "no workers; the main process is the bottleneck", "Main process"),
        (
            "run_one_configuration_crashes",
            "no workers; the main process is the bottleneck",
            "Main process",
        ),
        (
            "profile_generator_untraced",
            "storage latency; the main process waits",
            "Blocked",
        ),
    ],
)
def test_the_first_line_of_why_agrees_with_the_headline(name: str, headline: str, first: str) -> None:
    run = recorded(name)
    assert run.verdict.headline == headline
    assert the(run, VerdictBlock).why[0].label == first


def test_a_run_that_is_too_noisy_to_decide_shows_its_throughput_and_target() -> None:
    text = brief(recorded("scenario_run_healthy_photos_w2"))
    assert re.search(r"\n(Best config|Fastest estimate|Throughput).*: \d+ samples/s", text)
    assert "\nTarget " in text
    assert "  Data wait interval  includes 5%, the cutoff for input-bound\n" in text


@pytest.mark.parametrize("draw", [brief, lambda run: render_markdown(build_document(run)), _notebook, _page])
def test_every_presenter_says_each_line_of_evidence_and_each_doubt_once(draw: Callable[[RunRecord], str]) -> None:
    run = recorded("example_two_cores")
    text = re.sub(
        r"\s+", " ", entities.unescape(draw(run)).replace("\\", "").replace("\u00a0", " ").replace("\u2060", "")
    )
    found = the(run, VerdictBlock)
    assert found.reached
    for said in (*found.reached, *(reason.value for reason in found.why if not reason.only_verbose), *found.doubts[:1]):
        assert text.count(said.text) == 1, said.text
