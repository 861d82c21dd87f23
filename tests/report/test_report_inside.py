from dataclasses import replace
from types import SimpleNamespace

import pytest
import run_factory as runs
import run_profiles as profiles
from blocks import ids, parts, within

from loaderbench.records import Epochs, RankReadings, RunRecord, SampleTimes, StageCost, Trial
from loaderbench.report.document import build_document
from loaderbench.report.model import Breakdown, Paragraph, Section, Table
from loaderbench.report.sections import inside


def inside_of(run: RunRecord) -> SimpleNamespace:
    return named_parts(build_document(run).sections)


def part_of(trial: Trial) -> SimpleNamespace:
    return named_parts(inside.of_trial(trial))


def named_parts(sections: tuple[Section, ...]) -> SimpleNamespace:
    """The parts of the report about one trial, by name; a missing part is `None`."""
    found = parts(sections)
    return SimpleNamespace(**{name: found.get(name) for name in ("step", "sample", "workers", "waits", "slow")})


def subject_of(run: RunRecord) -> str:
    return within(build_document(run), "inside", Paragraph)[0].text.text


def cells(table: Table) -> dict[str, list[str]]:
    return {row.cells[0].text: [cell.text for cell in row.cells[1:]] for row in table.rows}


def table_of(part: Breakdown | None, number: int = 0) -> Table:
    assert part
    assert part.missing is None
    return part.tables[number]


def why_missing(part: Breakdown | None) -> str:
    assert part
    assert part.missing
    assert (part.segments, part.tables) == ((), ())
    return part.missing.text


def test_a_step_is_its_wait_its_marked_stages_and_the_rest() -> None:
    step = part_of(profiles.measured_trial()).step

    assert cells(table_of(step)) == {
        "data wait": ["25.6", "41.0%"],
        "host-to-device copy": ["2.1", "3.4%"],
        "optimizer": ["5.2", "8.3%"],
        "compute and other": ["29.6", "47.3%"],
        "Total": ["62.5", "100.0%"],
    }
    assert table_of(step).caption == "Mean time per step, 300 batches (512 samples/s)"


@pytest.mark.parametrize("make", [profiles.traced, profiles.untraced, profiles.generator, profiles.main_process])
def test_every_bar_adds_up_and_has_the_colors_of_its_table(make: object) -> None:
    assert callable(make)
    found = inside_of(make())
    assert found
    for part in (found.step, found.sample, found.workers):
        if part and part.segments:
            assert sum(piece.share for piece in part.segments) == pytest.approx(1)
            assert [piece.tone for piece in part.segments] == [row.tone for row in part.tables[0].rows if row.tone]


def test_a_step_whose_wall_time_is_not_known_is_put_together_from_its_means() -> None:
    trial = replace(profiles.measured_trial(), steady_s=None, batches=None, step_stages=None)

    assert cells(table_of(part_of(trial).step))["Total"] == ["62.5", "100.0%"]


def test_stages_that_ran_side_by_side_leave_no_negative_rest_and_say_so() -> None:
    trial = replace(profiles.measured_trial(), step_stages={"transfer": StageCost(0.05, 0.05)})
    step = part_of(trial).step

    assert "compute and other" not in cells(table_of(step))
    assert cells(table_of(step))["Total"] == ["75.6", "100.0%"]
    assert step
    assert any("overlap" in note.text for note in step.notes)


def test_a_step_that_was_not_measured_says_why() -> None:
    trial = replace(profiles.measured_trial(), data_wait_share=None, step=None, not_measured={"step": "it hung"})

    assert why_missing(part_of(trial).step) == "not measured: it hung"


def test_a_sample_has_its_stages_in_order_with_their_parts_set_in() -> None:
    table = table_of(part_of(profiles.traced_trial()).sample)

    assert [(row.cells[0].text, row.depth) for row in table.rows] == [
        ("read", 0),
        ("decode", 0),
        ("PIL.Image.Image.load", 1),
        ("transform", 0),
        ("RandomResizedCrop", 1),
        ("RandomHorizontalFlip", 1),
        ("Normalize", 1),
        ("augment with noise", 0),
        ("other __getitem__ code", 0),
        ("collate", 0),
        ("Total", 0),
    ]
    assert cells(table)["decode"] == ["4.17", "4.02", "55.2%"]
    assert cells(table)["RandomResizedCrop"] == ["0.85", "0.83", "11.3%"]
    assert cells(table)["Total"] == ["7.55", "6.43", "100.0%"]


def test_a_part_that_is_its_whole_stage_is_not_told_twice() -> None:
    cost = StageCost(0.001, 0.002)
    trial = replace(profiles.traced_trial(), stages={"decode": cost}, stage_parts={"decode/loader": cost})

    assert [row.cells[0].text for row in table_of(part_of(trial).sample).rows] == ["decode", "Total"]


def test_a_stage_whose_time_was_not_read_is_listed_and_counts_to_no_share() -> None:
    trial = replace(
        profiles.traced_trial(),
        stages={"read": StageCost(0.001, None), "decode": StageCost(None, 0.002)},
        stage_parts={},
    )
    table = table_of(part_of(trial).sample)

    assert cells(table)["decode"] == ["2.00", "not measured: no CPU time recorded", "100.0%"]
    assert cells(table)["read"][0] == "not measured: no wall time recorded"
    assert cells(table)["Total"][1].startswith("not measured")


@pytest.mark.parametrize(
    ("make", "title"),
    [
        (profiles.traced, "Sample time in the workers"),
        (profiles.main_process, "Sample time in the main process"),
        (profiles.generator, "Sample time in the loader"),
    ],
)
def test_the_heading_of_a_sample_says_where_it_was_made(make: object, title: str) -> None:
    assert callable(make)
    found = inside_of(make())
    assert found
    assert found.sample
    assert found.sample.title == title


def test_what_was_thinned_out_is_told_beside_the_stages() -> None:
    sample = part_of(profiles.traced_trial()).sample
    assert sample
    assert [note.text for note in sample.notes] == ["Stages were timed in one of 3.2 samples."]


def test_the_states_of_the_workers_add_up_and_mean_something() -> None:
    workers = part_of(profiles.traced_trial()).workers
    assert workers
    facts = {fact.label: fact.value.text for fact in workers.facts}

    assert [row.cells[1].text for row in table_of(workers).rows] == ["71.2%", "19.6%", "9.2%"]
    assert all(row.cells[2].text for row in table_of(workers).rows)
    assert facts["Page cache hits"] == "98% of bytes read"
    assert facts["Major page faults"] == "0 per second (from disk)"
    assert facts["Threads per worker"] == "3.0"
    assert facts["Memory (PSS)"] == "1.31 GiB for all workers; shared pages counted once"


def test_what_could_not_be_read_of_the_workers_says_why_and_what_nobody_looked_at_is_left_out() -> None:
    trial = profiles.traced_trial()
    assert trial.workers
    states = replace(trial.workers, pss_bytes=None, page_cache_hit_share=None, not_measured={"pss_bytes": "not Linux"})
    workers = part_of(replace(trial, workers=states)).workers
    assert workers
    facts = {fact.label: fact.value.text for fact in workers.facts}

    assert facts["Memory (PSS)"] == "not measured: not Linux"
    assert "Page cache hits" not in facts


def test_slow_samples_are_ranked_and_tell_the_name_of_the_file_alone() -> None:
    slow = part_of(profiles.traced_trial()).slow
    slowest = table_of(slow, 1)

    assert [cell.text for cell in slowest.rows[0].cells] == ["1200", "photo_0000.jpg", "350.0", "decode", "0"]
    assert len(slowest.rows) == 10
    assert slowest.note == "4 more in run.json."
    assert slow
    assert slow.lead
    assert "8.2% of loading time" in slow.lead.text
    assert cells(table_of(slow))["sample"] == ["7.6", "6.1", "14.9", "33.8", "350.0"]


@pytest.mark.parametrize("path", ["/a/b/x.jpg", "C:\\a\\b\\x.jpg", "x.jpg", "/a/x.jpg/"])
def test_a_path_of_any_system_is_cut_to_its_last_part(path: str) -> None:
    times = profiles.traced_trial().sample_times
    assert times
    one = SampleTimes(wall=times.wall, slowest=(profiles.slow_sample(0, path=path),), tail_share=0.0)
    slow = part_of(replace(profiles.traced_trial(), sample_times=one)).slow

    assert table_of(slow, 1).rows[0].cells[1].text == "x.jpg"


def test_a_sample_without_a_path_says_so_and_where_none_has_one_there_is_no_column() -> None:
    trial = profiles.traced_trial()
    times = trial.sample_times
    assert times
    nameless = profiles.slow_sample(1, path=None, not_measured={"path": "it comes from an archive"})
    some = replace(times, slowest=(profiles.slow_sample(0), nameless))
    none = replace(times, slowest=(nameless,))

    row = table_of(part_of(replace(trial, sample_times=some)).slow, 1).rows[1]
    assert row.cells[1].text == "unknown: it comes from an archive"
    columns = table_of(part_of(replace(trial, sample_times=none)).slow, 1).columns
    assert [column.label for column in columns] == ["Index", "ms", "Largest stage", "Worker"]


def test_without_workers_no_worker_is_named() -> None:
    found = inside_of(profiles.main_process())
    assert found

    assert "Worker" not in [column.label for column in table_of(found.slow, 1).columns]
    assert why_missing(found.workers) == "not measured: without workers the main process loads"


def test_first_batch_and_epoch_boundaries_stand_apart_from_the_waits() -> None:
    waits = part_of(profiles.measured_trial()).waits
    assert waits

    assert cells(table_of(waits))["data wait"] == ["25.6", "4.1", "104.0", "171.0", "402.0"]
    assert {fact.label: fact.value.text for fact in waits.facts} == {
        "First batch": "1.37 s",
        "Epochs started": "3",
        "Epoch boundary": "mean 1.61 s, max 1.83 s",
    }


def test_a_single_epoch_boundary_is_told_once() -> None:
    epochs = Epochs(begun=2, boundary_s=0.128, boundary_max_s=0.128)
    waits = part_of(replace(profiles.measured_trial(), epochs=epochs)).waits
    assert waits
    assert waits.facts[-1].value.text == "128 ms"


def test_a_wait_that_was_not_read_is_a_note_with_its_reason() -> None:
    trial = replace(profiles.measured_trial(), data_wait=None, not_measured={"data_wait": "the clock stood still"})
    waits = part_of(trial).waits
    assert waits

    assert list(cells(table_of(waits))) == ["rest of step"]
    assert "Data wait: not measured: the clock stood still." in [note.text for note in waits.notes]


def test_one_reason_is_told_once_and_names_what_else_it_holds_for() -> None:
    found = inside_of(profiles.untraced())
    assert found

    assert why_missing(found.sample) == f"not measured: {profiles.NO_TRACE}"
    assert found.sample
    assert [note.text for note in found.sample.notes] == [
        "\u201cWorker time breakdown\u201d and \u201cSlow samples\u201d: not measured, for the same reason."
    ]
    assert (found.workers, found.slow) == (None, None)


def test_a_sweep_tells_of_a_trial_of_its_best_configuration() -> None:
    run = runs.typical()
    assert run.best

    name = subject_of(run).split()[2].rstrip(",")
    assert next(trial for trial in run.trials if trial.id == name).config == run.best.config


def test_a_sweep_without_a_best_tells_of_what_looked_fastest() -> None:
    assert "fastest estimate" in subject_of(runs.without_best())


@pytest.mark.parametrize("make", [runs.all_failed, runs.typical])
def test_a_sweep_that_was_not_traced_has_no_empty_frames(make: object) -> None:
    assert callable(make)
    run = make()
    assert isinstance(run, RunRecord)
    untraced = replace(run, trials=tuple(replace(trial, stages=None) for trial in run.trials))

    assert not {"inside", "workers", "waits", "slow"} & set(ids(build_document(untraced)))


def test_without_a_consumer_there_is_no_step_and_the_wait_is_time_in_next() -> None:
    sections = inside.of_trial(replace(profiles.traced_trial(), consumer="none"))
    found = named_parts(sections)
    assert found.step is None
    assert found.waits
    assert found.waits.title == "Time in next() and epochs"
    assert list(cells(table_of(found.waits))) == ["time in next()"]
    assert [(one.title, one.label) for one in sections if one.id in ("inside", "waits")] == [
        ("Sample time breakdown", "Sample"),
        ("Time in next() and epochs", "Time in next()"),
    ]


def test_a_trial_that_did_not_keep_its_consumer_has_that_of_its_run() -> None:
    run = replace(runs.typical(), consumer="none")
    assert run.trials[0].consumer is None
    assert inside_of(run).step is None
    assert inside_of(runs.typical()).step is not None


def test_the_stages_of_a_trial_with_ranks_are_those_of_one_rank() -> None:
    rank = RankReadings(rank=1, samples=640, batches=20, samples_per_s=80.0)
    trial = replace(runs.typical().trials[2], samples=1280, ranks=(replace(rank, rank=0), rank), slowest_rank=1)
    caption = table_of(part_of(trial).sample).caption
    assert caption == "Mean time per sample in a worker of rank 1, 640 samples"
