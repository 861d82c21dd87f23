import base64
import gzip
import json
import re
from dataclasses import replace

import pytest
import run_factory as runs
import run_profiles as profiles
from blocks import facts, failures, ids, ranking, the, within

from loaderbench.monitors.nvml import NONE_USED
from loaderbench.records import GpuUse, LoopLine, RunRecord, TimelinePoint
from loaderbench.report.document import build_document
from loaderbench.report.html import notebook_html, render_html
from loaderbench.report.model import Breakdown, Details, Paragraph, Table
from loaderbench.report.sections.recommendations import Cards
from loaderbench.report.sections.timeline import Timeline
from loaderbench.report.sections.verdict import KeyFigures

MAKERS = [profiles.traced, profiles.untraced, profiles.generator, profiles.main_process, profiles.keeps_up]
MAKERS += [profiles.nothing_measured, profiles.hostile_profile]


@pytest.mark.parametrize("make", MAKERS)
def test_a_profile_has_no_part_that_belongs_to_a_sweep(make: object) -> None:
    assert callable(make)
    document = build_document(make())

    assert not {"sweep", "scaling", "isolation", "cost"} & set(ids(document))
    assert ranking(document) is None
    assert within(document, "trials", Table) == []
    page = re.sub(r"<script.*?</script>", "", render_html(document), flags=re.DOTALL)  # may hold any letters
    for word in ("-P num_workers", "A/A", "n = 1", "shuffled within each round", "Student"):
        assert word not in page


def test_the_figures_are_those_of_the_one_configuration_without_a_word_of_rounds() -> None:
    verdict = the(profiles.traced(), KeyFigures)

    assert {figure.label: figure.value.text for figure in verdict.figures} == {
        "Samples/s": "512",
        "Data wait": "41%",
        "First batch": "1.37 s",
    }
    assert [(bar.kind, bar.value) for bar in verdict.bars] == [("measured", "512"), ("ceiling", "868")]
    assert verdict.ceiling
    assert "loop time between batches" in verdict.ceiling.text


def test_the_loader_stands_in_the_head_and_what_is_known_of_its_configuration_beside_the_figures() -> None:
    traced, generator = build_document(profiles.traced()), build_document(profiles.generator())

    assert (traced.facts[0].label, traced.facts[0].value.text) == ("Loader", "DataLoader over ImageFolder")
    best = the(traced, KeyFigures).best
    assert best
    assert best.text == "batch_size=32 num_workers=4 pin_memory=true"
    assert generator.facts[0].value.text == "generator"
    assert the(generator, KeyFigures).best is None


def test_the_state_counts_batches_and_says_when_the_loop_ended_early() -> None:
    run = profiles.traced()

    assert build_document(run).state.label == "complete: 300 batches"
    partial = build_document(replace(run, complete=False)).state
    assert (partial.tone, partial.label) == ("warn", "partial: 300 batches")
    assert partial.hint


def test_what_measuring_cost_is_told_with_how_it_was_measured() -> None:
    traced, plain = build_document(profiles.traced()), build_document(profiles.untraced())

    assert [(fact.label, fact.value.text) for fact in facts(traced, "noise")] == [
        ("Recorder", "3.10 \u00b5s per batch"),
        ("Tracing", "19.0 \u00b5s per sample, from on/off pairs"),
        ("Total", "at most 0.25% of wall time"),
    ]
    assert [fact.value.text for fact in facts(plain, "noise")] == ["3.10 \u00b5s per batch, 0.0050% of wall time"]


def method(run: RunRecord) -> list[str]:
    found = next(fold for fold in build_document(run).all(Details) if fold.summary == "Method")
    return [block.text.text for block in found.blocks if isinstance(block, Paragraph)]


def test_the_method_is_that_of_a_profile_and_tells_of_tracing_only_where_there_was_some() -> None:
    traced, plain = method(profiles.traced()), method(profiles.untraced())

    assert "Warm-up (10 batches) and epoch boundaries are excluded." in traced[1]
    assert "wrappers around worker_init_fn" in traced[-1]
    assert not [text for text in plain if "worker_init_fn" in text]


@pytest.mark.parametrize(
    ("count", "said"), [(0, "Warm-up (0 batches)"), (1, "Warm-up (1 batch)"), (None, "Warm-up (the first batches)")]
)
def test_the_warm_up_is_told_in_words(count: int | None, said: str) -> None:
    run = profiles.profile_of(replace(profiles.measured_trial(), warmup_batches=count))

    assert said in method(run)[1]


def test_a_profile_that_measured_nothing_shows_its_failure_and_no_empty_frame() -> None:
    document = build_document(profiles.nothing_measured())

    assert (document.state.tone, document.state.label) == ("bad", "failed: nothing was measured")
    assert not {"inside", "workers", "waits", "slow", "noise", "key-figures"} & set(ids(document))
    assert facts(document, "trials") == []
    assert not [block for one in document.sections for block in one.glance]
    assert [group.kind.text for group in failures(document)] == ["no batches"]
    assert failures(document)[0].hint.text == "Let the loop run on, or lower warmup."


def test_a_profile_without_any_trial_can_be_drawn() -> None:
    run = replace(profiles.nothing_measured(), trials=(), configurations=())

    assert "nothing was measured" in render_html(build_document(run))


def test_a_reading_that_is_not_there_says_why_and_is_no_zero() -> None:
    readings = {fact.label: fact.value.text for fact in facts(build_document(profiles.traced()), "trials")}

    assert readings["CPU, % of available CPUs"] == "not measured: a profile runs no monitors"
    assert "PSS" not in readings


def test_each_section_that_is_there_can_be_reached_from_the_head_and_no_other() -> None:
    traced, generator = build_document(profiles.traced()), build_document(profiles.generator())

    anchors = ["verdict", "pipeline", "recommendations", "inside", "workers", "waits", "slow", "noise", "trials"]
    assert [link.anchor for link in traced.links] == anchors
    assert [link.anchor for link in generator.links] == [
        a for a in anchors if a not in ("recommendations", "workers", "slow")
    ]


def contents(page: str) -> list[str]:
    packed = re.search('id="contents">([^<]+)<', page)
    assert packed
    found: list[str] = json.loads(gzip.decompress(base64.b64decode(packed[1])))
    return found


def test_no_folder_of_a_slow_file_leaves_with_the_page_not_even_in_the_download() -> None:
    page = render_html(build_document(profiles.traced()))
    as_json = contents(page)[0]

    assert "photo_0000.jpg" in page
    assert "photo_0013.jpg" in as_json
    assert profiles.FOLDER.strip("/") not in page
    assert "private" not in as_json


def drawn_in_notebook(run: RunRecord) -> str:
    return notebook_html(build_document(run))


def test_a_notebook_gets_the_verdict_the_proof_and_the_tables() -> None:
    html = drawn_in_notebook(profiles.traced())

    assert "too few workers: 4 busy; decode is the largest stage (63% of CPU time)" in html
    assert html.count("<table") == 4
    for said in ("RandomResizedCrop", "compute and other", "photo_0001.jpg", "Profiling overhead", "71% on a CPU"):
        assert said in html
    assert len(html) < 24_000


@pytest.mark.parametrize("make", MAKERS)
def test_a_notebook_gets_no_script_no_style_sheet_and_no_color_of_ours(make: object) -> None:
    assert callable(make)
    html = drawn_in_notebook(make())

    assert not re.findall(r"<(script|style|img|link|iframe)|\bon\w+=\"|[^-]color:(?!inherit)|#[0-9a-f]{3,6}\b", html)
    assert "background:#" not in html


def test_a_notebook_tells_what_a_failed_profile_failed_by_and_what_to_do() -> None:
    html = drawn_in_notebook(profiles.nothing_measured())

    assert "no batch after its warm-up" in html
    assert "lower warmup" in html


def test_a_notebook_shows_the_ranking_of_a_sweep() -> None:
    html = drawn_in_notebook(runs.typical())

    assert html.count("<table") == 2
    assert "Samples/s" in html


def test_a_notebook_shows_the_first_recommendations_with_their_basis() -> None:
    html = drawn_in_notebook(runs.typical())

    assert "Use two workers and a batch size of 128</bdi>: 3.9\u00d7" in html
    assert html.count("(measured)") == 1
    assert "Recommendations" not in drawn_in_notebook(runs.all_failed())


def test_the_timeline_of_a_profile_speaks_of_no_baseline() -> None:
    run = profiles.traced()
    part = the(run, Timeline, runs.timeline(run))

    assert [trial.label for trial in part.trials] == ["batch_size=32 num_workers=4 pin_memory=true, round 1"]
    assert part.figures[0]["layout"]["light"]["xaxis"]["title"]["text"] == "time since steady-state start, s"
    assert "<select" not in render_html(build_document(run, runs.timeline(run)))


def test_the_method_tells_of_events_only_where_a_device_was_read() -> None:
    trial = profiles.traced_trial()
    on_device = replace(trial, gpus=(GpuUse(0, "GPU-0", 60.0),))

    assert "two events on its stream" in method(profiles.profile_of(on_device))[0]
    assert "events" not in method(profiles.profile_of(trial))[0]


def test_what_every_field_of_a_failed_profile_lacks_is_not_told_field_by_field() -> None:
    run = profiles.nothing_measured()
    trial = replace(run.trials[0], not_measured={"samples_per_s": "nothing was measured", "batches": "nothing"})

    assert facts(build_document(replace(run, trials=(trial,))), "trials") == []


def test_the_method_of_two_versions_is_that_of_pairs() -> None:
    swept, compared = method(runs.typical()), method(replace(runs.typical(), kind="ab"))
    assert "order shuffled within each round" in swept[0]
    assert "both versions in interleaved pairs" in compared[0]
    assert "over rounds" in swept[2]
    assert "over all interim checks and configs" in compared[2]


@pytest.mark.parametrize(("text", "end"), [("torch.save(model)", ": torch.save(model)"), ("", ".")])
def test_the_rest_of_a_step_has_its_line_of_code(text: str, end: str) -> None:
    run = profiles.traced()
    line = LoopLine(place="train.py:44", text=text, share=0.9, looks=50)
    (trial,) = run.trials
    (step,) = [
        one
        for one in within(build_document(replace(run, trials=(replace(trial, step_line=line),))), "inside", Breakdown)
        if one.title == "Step time"
    ]
    assert step.notes[-1].text == f"90% of the rest of the step is in train.py:44 (50 stack samples){end}"


def test_a_known_cause_without_a_fix_says_so() -> None:
    run = replace(profiles.traced(), recommendations=())
    assert [cards.empty for cards in within(build_document(run), "recommendations", Cards)] == [
        "No fixes: none is known for this cause."
    ]
    unknown = replace(run, verdict=replace(run.verdict, stage=None, limit=None))
    assert "recommendations" not in ids(build_document(unknown))


def test_the_method_of_an_attached_process_is_that_of_looking_from_outside() -> None:
    run = profiles.attached()
    said = method(run)
    assert said[0].startswith("Watched from outside for 10.0 s: ")
    assert "share of the main thread\u2019s stack samples inside next()" in said[1]
    for of_a_loop in ("your loop", "events", "Warm-up", "CUDA"):
        assert of_a_loop not in " ".join(said)
    part = the(run, Timeline, [TimelinePoint("attach", float(i), "rss_bytes", 1e9) for i in range(3)])
    assert part.figures[0]["layout"]["light"]["xaxis"]["title"]["text"] == "time since first reading, s"


def test_gpus_that_were_not_seen_from_outside_are_not_none() -> None:
    document = build_document(profiles.attached())
    seen = f"not seen: {NONE_USED}"
    assert [fact.value.text for fact in document.facts if fact.label == "GPU"] == [seen]
    assert [fact.value.text for fact in facts(document, "about") if fact.label == "GPU"] == [seen]
    assert [fact.value.text for fact in build_document(profiles.untraced()).facts if fact.label == "GPU"] == ["none"]


def test_a_machine_without_a_memory_limit_has_none() -> None:
    run = profiles.untraced()
    reasons = {"memory_limit_bytes": "no cgroup memory limit"}
    limited = replace(run.environment, memory_limit_bytes=2**30)
    for environment, text in ((replace(run.environment, not_measured=reasons), "none"), (limited, "1.00 GiB")):
        found = facts(build_document(replace(run, environment=environment)), "about")
        assert [fact.value.text for fact in found if fact.label == "Memory limit"] == [text]
