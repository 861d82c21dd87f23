"""The picture of the pipeline, in HTML and as text: what is written, what is marked, what is left out and why."""

from __future__ import annotations

import functools
import io
import re
from dataclasses import replace

import pytest
import run_factory as runs
import run_profiles as profiles
from blocks import glance, section, the
from prose import long_sentences
from rich.console import Console
from run_hostile import hostile
from run_recorded import NAMES, recorded

from loaderbench.records import RunRecord, StageCost
from loaderbench.report import words
from loaderbench.report.document import build_document
from loaderbench.report.html import render_html
from loaderbench.report.markdown import render_markdown
from loaderbench.report.model import Document, Fact, Table
from loaderbench.report.sections.pipeline import Part, Picture
from loaderbench.report.terminal import draw, print_summary


@functools.cache
def report(name: str) -> Document:
    """The report of a recorded run."""
    return build_document(recorded(name))


def picture(run: RunRecord) -> Picture:
    return the(run, Picture)


def part(run: RunRecord, name: str) -> Part:
    return next(one for one in picture(run).parts if one.name == name)


def explanations(found: Picture) -> list[str]:
    """Why the widths do not show the limit: next to the bottleneck, or below the picture."""
    return [*(one.why for one in found.parts if one.why), *(note.text for note in found.notes)]


def table(run: RunRecord) -> Table:
    found = glance(build_document(run), "pipeline")[0]
    assert isinstance(found, Table)
    return found


def lines(run: RunRecord) -> list[list[str]]:
    return [[getattr(cell, "main", "") or cell.text for cell in row.cells] for row in table(run).rows]


def test_it_is_the_first_thing_after_the_verdict() -> None:
    assert [one.id for one in build_document(runs.typical()).sections][:2] == ["verdict", "pipeline"]


def test_the_text_says_what_the_picture_shows() -> None:
    run = recorded("example_two_cores")

    assert table(run).caption == "Pipeline, samples/s (Best config batch_size=32 num_workers=2)"
    assert lines(run) == [
        ["Storage", "38,406", "if workers only read"],
        ["2 workers", "873", "decode 48%, transform 32%, collate 15%, ..."],
        ["2 CPUs", "844", "bottleneck; shared by all processes"],
        ["Worker-to-main IPC", "38,927", "estimated from CPU time of the main process"],
        ["Emulated GPU", "1,000", "target"],
        ["Throughput", "836", "measured"],
    ]
    drawn = picture(run)
    assert (drawn.throughput, drawn.target) == ("836", "Target: 1,000 samples/s")
    assert [one.said for one in part(run, "2 workers").stages if one.marked] == ["decode 48%"]
    assert drawn.left_out == "host-to-device copy (no GPU)"
    assert [fact.label for fact in glance(build_document(run), "pipeline")[1:]] == ["Not shown"]


def test_every_number_is_the_one_that_the_verdict_prints() -> None:
    run = recorded("example_two_cores")
    limits = next(text for text in run.verdict.evidence if text.lower().startswith("throughput limits"))
    printed = set(re.findall(r"\d+(?:,\d{3})*", limits))

    assert printed == {one.rate.text for one in picture(run).parts} - {"38,406"}


@pytest.mark.parametrize("name", NAMES)
def test_at_most_one_part_is_marked_and_it_is_the_verdicts(name: str) -> None:
    found, bound = report(name).find(Picture), recorded(name).verdict.bound
    if found is None:
        assert section(report(name), "pipeline") is None
        return
    marks = [one.mark for one in found.parts if one.mark]
    assert marks == (["narrowest"] if bound == "unknown" else ["bottleneck"])


@pytest.mark.parametrize("name", NAMES)
def test_its_sentences_are_short(name: str) -> None:
    found = report(name).find(Picture)
    assert [sentence for text in (explanations(found) if found else []) for sentence in long_sentences(text)] == []


@pytest.mark.parametrize(
    ("name", "tag", "why"),
    [
        ("scenario_run_straggler_w4", "bottleneck: slow samples", "Finished batches wait for a slow one"),
        ("scenario_startup_init_w2", "bottleneck: epoch startup", "Each epoch starts with a wait"),
        ("scenario_quota_pinned_photos_w2", "bottleneck", "A CPU quota or an affinity mask"),
        ("run_shared_memory_full", "bottleneck", "Threads wait for a CPU"),
        ("scenario_memory_pages_w2", f"bottleneck: {words.stage('sample').text}", "Page faults delay this stage"),
        ("scenario_transport_arrays_w2", "bottleneck", "Worker-to-main IPC delays batches"),
        ("synthetic_quiet_main_sampler_w2", "bottleneck: main process", "Work in the main process is serialized"),
        ("run_a_rung_fails", "bottleneck: main process", "Most of the time is spent outside"),
        ("scenario_bandwidth_folder_w2", "bottleneck", "Workers wait for storage"),
        ("run_pruned", "bottleneck", "The main process waits for storage"),
        ("scenario_decode_w0", "bottleneck", "Other programs hold CPUs"),
        ("synthetic_quiet_decode_w0", "bottleneck: decode", "Without workers, loading and training take turns"),
        ("run_ladder_interference", "narrowest", "Throughput limits do not include waits"),
    ],
)
def test_where_the_widths_do_not_show_the_limit_it_says_why(name: str, tag: str, why: str) -> None:
    found = the(report(name), Picture)

    assert [one.tag for one in found.parts if one.tag] == [tag]
    assert [said for said in explanations(found) if said.startswith(why)]
    facts = [block for block in glance(report(name), "pipeline") if isinstance(block, Fact)]
    assert [fact for fact in facts if fact.value.text.startswith(why)], "text says it too"


@pytest.mark.parametrize("name", ["example_two_cores", "run_small", "synthetic_traced_profile"])
def test_where_they_show_it_there_is_nothing_to_explain(name: str) -> None:
    assert explanations(the(report(name), Picture)) == []


def test_a_rate_above_the_limits_is_said_to_contradict_them() -> None:
    assert [note for note in picture(profiles.main_process()).notes if note.text.startswith("Throughput exceeds")]


def test_another_part_that_is_narrower_by_its_limit_alone_is_explained() -> None:
    """Library threads that wait awake keep CPUs busy, which the verdict does not count."""
    run = runs.typical()
    free = replace(run, verdict=replace(run.verdict, limit="workers", stage="decode"))
    busy = tuple(replace(trial, stages={"decode": StageCost(0.001, 0.001)}) for trial in free.trials)

    assert part(replace(free, trials=busy), "2 workers").why.startswith("Another part is narrower")


def test_a_profile_draws_its_loop_and_the_copy_within_it() -> None:
    run = recorded("profile_transfer_marked")

    assert table(run).caption == "Pipeline, samples/s"
    assert picture(run).target == "Loop without data waits: 72 samples/s"
    assert part(run, "Training step").tag == "bottleneck: copy"
    assert [one.said for one in part(run, "Training step").stages] == ["host-to-device copy 91%", "rest of the step 9%"]


def test_without_a_trace_the_loader_is_marked_and_says_why_it_has_no_number() -> None:
    loader = part(profiles.generator(), "Loader")

    assert (loader.mark, loader.rate.missing, loader.rate.main) == ("bottleneck", True, "not measured")
    assert loader.note is not None
    assert loader.note.text == profiles.NO_WORKERS


def test_many_stages_are_added_up_and_a_name_of_the_users_own_cannot_be_taken_for_ours() -> None:
    trial = profiles.traced_trial()
    own = {f"stage {i}": StageCost(0.0001 * i, 0.0001 * i) for i in range(1, 8)} | {"copy": StageCost(0.01, 0.01)}
    found = part(profiles.profile_of(replace(trial, stages=own, sample_times=None)), "4 workers")

    assert len(found.stages) == 5
    assert (found.stages[-1].said, found.stages[-1].tone) == ("other 8%", "rest")
    assert [one.said for one in found.stages if "host-to-device" in one.said] == []
    assert sum(one.share for one in found.stages) == pytest.approx(1, abs=1e-3)


def test_a_slow_loader_has_digits_and_a_small_share_is_not_nothing() -> None:
    run = recorded("scenario_memory_large_photos_w2")

    assert picture(run).throughput == "4.66"
    assert "collate <1%" in [one.said for one in part(run, "2 workers").stages]


def test_a_step_that_limits_a_healthy_loader_is_no_alarm() -> None:
    assert picture(recorded("run_small")).healthy
    assert not picture(recorded("example_two_cores")).healthy
    assert '<ol class="pipe is-healthy">' in render_html(report("run_small"))


def test_a_run_without_a_measurement_has_no_picture() -> None:
    for run in (runs.all_failed(), profiles.nothing_measured()):
        document = build_document(run)
        assert (section(document, "pipeline"), glance(document, "pipeline")) == (None, ())
        assert 'class="pipe"' not in render_html(document)


def test_markdown_has_it_and_a_terminal_only_when_asked() -> None:
    document = build_document(recorded("example_two_cores"))
    terminal, text = io.StringIO(), io.StringIO()
    print_summary(document, Console(file=terminal, width=100))
    found = glance(document, "pipeline")[0]
    assert isinstance(found, Table)
    draw(Console(file=text, width=100), found.columns, found.rows)

    assert "| 2 CPUs | 844 | bottleneck; shared by all processes |" in render_markdown(document)
    assert "Worker-to-main IPC" not in terminal.getvalue()
    assert re.search(r"2 CPUs +844 +bottleneck; shared by all processes", text.getvalue())
    assert max(map(len, text.getvalue().splitlines())) <= 100


@pytest.mark.parametrize("make", [hostile, profiles.hostile_profile])
def test_names_from_outside_stay_text(make: object) -> None:
    html = render_html(build_document(make()))  # type: ignore[operator]
    own = html[html.index('<section id="pipeline"') : html.index("</section>", html.index('<section id="pipeline"'))]

    assert "<script" not in own
    assert "<img" not in own


def test_the_page_draws_one_piece_for_each_part() -> None:
    html = render_html(build_document(profiles.traced()))
    drawn = html[html.index('<ol class="pipe">') : html.index("</ol>", html.index('<ol class="pipe">'))]

    assert drawn.count("<svg") == len(picture(profiles.traced()).parts) == drawn.count('aria-hidden="true" focusable')
    assert drawn.count('class="is-bottleneck is-limit"') == 1
