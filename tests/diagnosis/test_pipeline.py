"""The pipeline of a run: what each part allows, what its time goes to, and which part the verdict is about."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import get_args

import pytest
import run_factory as runs
import run_profiles as profiles
from blocks import the
from run_recorded import NAMES, recorded

from loaderbench.diagnosis.pipeline import PartName, Pipeline, describe_pipeline
from loaderbench.records import Gpu, Interval, Isolation, IsolationRun, RunRecord, StageCost, Trial, WorkerStates
from loaderbench.report.sections.pipeline import Picture


def pipeline(run: RunRecord) -> Pipeline:
    found = describe_pipeline(run)
    assert found is not None
    return found


def shares(found: Pipeline, part: str) -> dict[str, float]:
    return {one.stage: one.share for each in found.parts if each.name == part for one in each.stages}


def names(found: Pipeline) -> list[str]:
    return [part.name for part in found.parts]


PRINTED = {"workers": "workers", "CPUs": "cpus", "main process": "ipc", "target": "step"}
"""A limit as the verdict calls it, to the part that has it."""


def printed_limits(run: RunRecord) -> dict[str, str]:
    """The line of the verdict that lists the limits, in its order: `Throughput limits: CPUs 844, ... samples/s`."""
    line = next((line for line in run.verdict.evidence if line.startswith("Throughput limits: ")), "")
    return {PRINTED[name]: rate for name, rate in re.findall(r"(?:: |, )(\D+) (\d[\d,]*)(?=, | samples)", line)}


@pytest.mark.parametrize("name", NAMES)
def test_the_limits_of_a_recorded_run_are_those_that_its_verdict_prints(name: str) -> None:
    run = recorded(name)
    found, said = describe_pipeline(run), printed_limits(run)
    if found is None:
        assert not said
        return
    assert said == {part: f"{found.rate(part):,.0f}" for part in get_args(PartName) if part in said}
    assert [float(rate.replace(",", "")) for rate in said.values()] == sorted(
        float(rate.replace(",", "")) for rate in said.values()
    )
    of_loader = {part.name for part in found.parts if part.samples_per_s and part.name in ("workers", "cpus", "ipc")}
    assert not said or of_loader == said.keys() - {"step"}


def test_most_recorded_runs_print_their_limits() -> None:
    assert sum(bool(printed_limits(recorded(name))) for name in NAMES) > len(NAMES) / 2


@pytest.mark.parametrize("name", NAMES)
def test_the_shares_of_each_part_add_up_and_every_part_is_shown_or_has_its_reason(name: str) -> None:
    found = describe_pipeline(recorded(name))
    if found is None:
        return
    for part in found.parts:
        assert part.samples_per_s is not None or part.reason
        assert not part.stages or sum(one.share for one in part.stages) == pytest.approx(1)
    copied = "copy" if "copy" in shares(found, "step") else None
    assert {*names(found), *found.left_out, copied} - {None} == {"storage", "workers", "cpus", "ipc", "copy", "step"}


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("example_two_cores", "cpus"),
        ("run_ladder_emulated", "cpus"),
        ("scenario_threads_blur_two_each_w2", "cpus"),
        ("run_small", "step"),
        ("profile_transfer_marked", "step"),
        ("synthetic_traced_profile", "workers"),
        ("synthetic_quiet_main_sampler_w2", "ipc"),
    ],
)
def test_the_bottleneck_is_the_part_with_the_lowest_limit(name: str, part: str) -> None:
    found = pipeline(recorded(name))
    rates = {one.name: one.samples_per_s for one in found.parts if one.samples_per_s is not None}

    assert (found.bottleneck, found.narrowest) == (part, part)
    assert rates[found.bottleneck] == min(rates.values())


def test_workers_that_wait_for_storage_may_be_a_little_narrower_than_storage() -> None:
    found = pipeline(recorded("run_verified"))

    assert (found.bottleneck, found.narrowest) == ("storage", "workers")
    assert found.limits_explain_it


@pytest.mark.parametrize(
    ("name", "bottleneck", "stage", "explained"),
    [
        ("example_two_cores", "cpus", "decode", True),
        ("run_small", "step", None, True),
        ("profile_transfer_marked", "step", "copy", True),
        ("run_ladder_target", "storage", "read", True),
        ("scenario_threads_blur_two_each_w2", "cpus", "transform", True),
        ("scenario_quota_group_hash_w1", "cpus", "sample", True),
        ("synthetic_traced_profile", "workers", "decode", True),
        ("synthetic_quiet_main_sampler_w2", "ipc", "main_process", False),
        ("scenario_run_straggler_w4", "workers", "stragglers", False),
        ("scenario_startup_init_w2", "workers", "startup", False),
        ("scenario_transport_arrays_w2", "ipc", "transport", False),
        ("scenario_run_healthy_photos_w2", None, None, True),
    ],
)
def test_the_part_that_the_verdict_names_is_the_bottleneck(
    name: str, bottleneck: str | None, stage: str | None, explained: bool
) -> None:
    found = pipeline(recorded(name))

    assert (found.bottleneck, found.stage, found.limits_explain_it) == (bottleneck, stage, explained)


def test_time_that_decoding_is_blocked_for_storage_counts_as_reading() -> None:
    found = pipeline(recorded("scenario_latency_folder_w2"))

    assert found.reads_inside == "decode"
    assert shares(found, "workers")["read"] > 0.8
    assert shares(found, "workers")["decode"] < 0.1
    assert (found.rate("workers") or 0) < (found.rate("storage") or 0) < 1.2 * (found.rate("workers") or 0)


def test_without_that_verdict_storage_allows_what_workers_could_read_if_they_did_nothing_else() -> None:
    found = pipeline(profiles.traced())
    read_s = 0.00091 * (1 - 0.196)

    assert found.rate("storage") == pytest.approx(4 / read_s)
    assert found.reads_inside is None


def test_without_workers_the_main_process_loads_and_trains_in_turn_and_nothing_is_handed_over() -> None:
    found = pipeline(profiles.main_process())

    assert (found.workers, found.in_turn) == (0, True)
    assert found.left_out == {"ipc": "no workers"}
    assert not pipeline(recorded("run_resumed")).in_turn, "an emulated GPU runs while the main process loads"


def test_with_only_a_rate_known_the_loader_has_no_limit_but_a_reason() -> None:
    found = pipeline(profiles.generator())
    loader = next(part for part in found.parts if part.name == "workers")

    assert (found.bottleneck, loader.samples_per_s) == ("workers", None)
    assert found.delivered == pytest.approx(512)
    assert loader.reason == profiles.NO_WORKERS
    assert set(found.left_out) == {"storage", "cpus", "ipc", "copy"}


def test_of_nothing_there_is_no_pipeline() -> None:
    assert describe_pipeline(runs.all_failed()) is None
    assert describe_pipeline(profiles.nothing_measured()) is None


def test_a_stage_of_the_users_own_is_the_one_that_is_marked() -> None:
    trial = profiles.traced_trial()
    cpu_bound = {"sample": StageCost(0.0001, 0.0001), "augment": StageCost(0.004, 0.004)}
    found = pipeline(profiles.profile_of(replace(trial, stages=cpu_bound, sample_times=None)))

    assert found.stage == "augment"


def test_the_stage_that_is_marked_is_the_one_that_the_headline_names() -> None:
    """Another of the user's stages takes longer, and uses no CPU."""
    own = {"tokenize": StageCost(0.004, 0.004), "fetch": StageCost(0.0001, 0.006), "sample": StageCost(0.0001, 0.0001)}
    run = profiles.profile_of(replace(profiles.traced_trial(), stages=own, sample_times=None, workers=None))

    assert "; tokenize is the largest stage" in run.verdict.headline
    assert (run.verdict.stage, run.verdict.work, pipeline(run).stage) == ("sample", "tokenize", "tokenize")


def test_files_that_are_read_in_the_dataset_s_own_code_are_said_to_be() -> None:
    """Of a dataset without a decode stage, the rest of a sample is blocked."""
    trial = profiles.traced_trial()
    looks = {"device": 1.0}
    blocked = WorkerStates(on_cpu_share=0.05, run_queue_share=0.0, blocked_share=0.95, blocked_on=looks)
    stages = {"sample": StageCost(0.0001, 0.006), "collate": StageCost(0.0003, 0.0003)}
    run = profiles.profile_of(replace(trial, stages=stages, sample_times=None, workers=blocked))

    assert (run.verdict.stage, run.verdict.read_inside, pipeline(run).reads_inside) == ("read", "sample", "sample")
    assert set(shares(pipeline(run), "workers")) == {"read", "sample", "collate"}
    notes = [note.text for note in the(run, Picture).notes]
    assert "Other __getitem__ code also reads files. Its blocked time counts as reading." in notes


def test_the_copy_of_a_profile_is_a_share_of_the_loops_own_time() -> None:
    found = pipeline(profiles.traced())  # 2.1 ms of a step that computes for 59% of 62.5 ms

    assert shares(found, "step")["copy"] == pytest.approx(0.0021 * 300 / 18.75 / 0.59)
    assert found.rate("step") == pytest.approx(512 / 0.59)


GPU = Gpu(0, "GPU-0", "NVIDIA H200", 141 * runs.GIB)


def replayed(transfer_s: Interval | None) -> RunRecord:
    """A sweep on a GPU with a step whose cached batches were replayed from the host, at 12.5 ms each."""
    run = runs.typical(gpus=(GPU,))
    assert run.best
    host = IsolationRun(name="replay_host", time_s=runs.spread(0.0125), samples_per_s=runs.spread(2560))
    return replace(
        run,
        consumer="target",
        isolation=Isolation(
            config=run.best.config,
            per="batch",
            rounds=3,
            runs=(host,),
            transfer_s=transfer_s,
            fetch_s=None,
            interference_s=None,
            not_measured={"transfer_s": "the replay failed"},
        ),
    )


@pytest.mark.parametrize(
    ("transfer_s", "share", "why"),
    [
        (Interval(0.0025, 0.002, 0.003), 0.2, None),
        (Interval(0.0025, -0.001, 0.006), None, "not significant"),
        (Interval(0.0025, None, None), None, "not significant"),
        (None, None, "the replay failed"),
    ],
)
def test_the_copy_of_a_sweep_is_what_replaying_from_the_host_takes_longer(
    transfer_s: Interval | None, share: float | None, why: str | None
) -> None:
    found = pipeline(replayed(transfer_s))

    assert shares(found, "step").get("copy") == (share and pytest.approx(share))
    assert found.left_out.get("copy") == why


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (runs.typical(), "no GPU"),
        (runs.gpu_run(), "the emulated GPU copies nothing"),
        (replace(runs.gpu_run(), consumer="target"), "no isolation runs"),
        (profiles.profile_of(replace(profiles.traced_trial(), step_stages=None), (GPU,)), "not marked"),
    ],
)
def test_a_copy_that_is_not_known_has_its_reason(run: RunRecord, why: str) -> None:
    assert pipeline(run).left_out["copy"].startswith(why)


def test_without_a_consumer_there_is_no_step_and_no_target() -> None:
    found = pipeline(replace(runs.typical(), consumer="none"))

    assert "step" not in names(found)
    assert found.left_out["step"] == "consumer: none"
    assert found.target is None


def test_failed_trials_of_the_configuration_do_not_count() -> None:
    run = runs.typical()
    assert run.best
    first = next(trial for trial in run.trials if trial.config == run.best.config)
    broken = replace(first, status="failed", stages={"decode": StageCost(9.0, 9.0)})

    def without(trials: tuple[Trial, ...]) -> tuple[Trial, ...]:
        return tuple(broken if trial is first else trial for trial in trials)

    assert pipeline(replace(run, trials=without(run.trials))).rate("workers") == pytest.approx(
        pipeline(run).rate("workers")
    )
