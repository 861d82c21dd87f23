"""Profiles of a user's own loop as a session would record them, made up in memory."""

from collections.abc import Sequence
from dataclasses import replace

from run_factory import GIB, environment
from run_hostile import HOSTILE, LONG

from loaderbench.conclusion import conclude
from loaderbench.monitors.nvml import NONE_USED
from loaderbench.recorder.ranks import RankRun, merge_ranks
from loaderbench.records import (
    Config,
    DatasetSummary,
    Epochs,
    Failure,
    Gpu,
    Measured,
    PlanSummary,
    Readings,
    RunRecord,
    SampleTimes,
    SlowSample,
    Spread,
    StageCost,
    Trial,
    WorkerStates,
)

CONFIG: Config = {"batch_size": 32, "num_workers": 4, "pin_memory": True}
NO_TRACE = "trace=True was not asked for"
NO_WORKERS = "a generator has no workers that could be looked into"
ONE_EPOCH = "there was one epoch"
NO_BATCHES = "ValueError: the loop took no batch after its warm-up"
FOLDER = "/data/people/private/"
OUTSIDE = "not visible from outside the process"


def slow_sample(number: int, **changes: object) -> SlowSample:
    found = SlowSample(
        index=1200 + 7 * number,
        wall_s=0.35 / (number + 1),
        stage=("decode", "read", "sample")[number % 3],
        worker=number % 4,
        path=f"{FOLDER}n0144/photo_{number:04d}.jpg",
    )
    return replace(found, **changes)  # type: ignore[arg-type]


def measured_trial(config: Config = CONFIG) -> Trial:
    """A loop of 62.5 ms a step that waits 41% of it; nothing was looked at inside the loader."""
    return Trial(
        role="profile",
        id="train",
        config=config,
        round=1,
        status="completed",
        samples_per_s=512.0,
        data_wait_share=0.41,
        time_to_first_batch_s=1.37,
        batches=300,
        samples=9600,
        warmup_batches=10,
        steady_s=18.75,
        step_stages={"transfer": StageCost(0.0011, 0.0021), "optimizer": StageCost(0.0051, 0.0052)},
        data_wait=Spread(300, 0.025625, 0.0041, 0.104, 0.171, 0.402),
        step=Spread(300, 0.036875, 0.0366, 0.0391, 0.0452, 0.0613),
        epochs=Epochs(begun=3, boundary_s=1.61, boundary_max_s=1.83),
        recorder_s_per_batch=3.1e-6,
        started_at="2026-03-12T14:03:10+00:00",
        duration_s=24.2,
        not_measured={
            "stages": NO_TRACE,
            "workers": NO_TRACE,
            "sample_times": NO_TRACE,
            "cpu_percent_of_allotted": "a profile runs no monitors",
        },
    )


def traced_trial() -> Trial:
    """Four workers that mostly decode."""
    return replace(
        measured_trial(),
        stages={
            "collate": StageCost(0.00031, 0.00038),
            "read": StageCost(0.00012, 0.00091),
            "decode": StageCost(0.00402, 0.00417),
            "augment with noise": StageCost(0.00071, 0.00074),
            "transform": StageCost(0.00124, 0.00131),
            "sample": StageCost(0.00003, 0.00004),
        },
        stage_parts={
            "transform/RandomResizedCrop": StageCost(0.00083, 0.00085),
            "transform/RandomHorizontalFlip": StageCost(0.00011, 0.00012),
            "transform/Normalize": StageCost(0.0003, 0.00034),
            "decode/PIL.Image.Image.load": StageCost(0.00398, 0.00412),
        },
        workers=WorkerStates(
            on_cpu_share=0.712,
            run_queue_share=0.196,
            blocked_share=0.092,
            count=4,
            other_threads_cpu_share=0.021,
            threads_per_worker=3.0,
            page_cache_hit_share=0.983,
            minor_faults_per_s=1830.0,
            major_faults_per_s=0.0,
            pss_bytes=int(1.31 * GIB),
        ),
        sample_times=SampleTimes(
            wall=Spread(9600, 0.00755, 0.0061, 0.0149, 0.0338, 0.35),
            slowest=tuple(slow_sample(number) for number in range(14)),
            tail_share=0.082,
        ),
        tracing_s_per_sample=1.9e-5,
        sampled="stages were timed in one of 3.2 samples",
        not_measured={"cpu_percent_of_allotted": "a profile runs no monitors"},
    )


def profile_of(trial: Trial, gpus: tuple[Gpu, ...] = (), description: str = "DataLoader over ImageFolder") -> RunRecord:
    return conclude(measured_by((trial,), gpus, description))


def measured_by(
    trials: tuple[Trial, ...], gpus: tuple[Gpu, ...] = (), description: str = "DataLoader over ImageFolder"
) -> Measured:
    """A profile of one trial, or of several ranks with one each, that nobody has concluded from."""
    config = trials[0].config
    return Measured(
        name="train",
        suite={"name": "train"},
        environment=environment(gpus, 8),
        dataset=DatasetSummary(description),
        plan=PlanSummary(
            {axis: [value] for axis, value in config.items()}, 1, 1, 1, (config,), config, "it is what the loop uses"
        ),
        consumer="loop",
        trials=trials,
        started_at="2026-03-12T14:03:00+00:00",
        finished_at="2026-03-12T14:03:34+00:00",
        complete=True,
        loaderbench_version="0.2.0",
        kind="profile",
    )


def of_ranks(waits: Sequence[float], hosts: Sequence[str] = ("a",)) -> RunRecord:
    """A distributed training: the data wait of each rank, on the hosts in turn."""
    ranks = [rank_run(rank, wait, hosts[rank % len(hosts)]) for rank, wait in enumerate(waits)]
    return conclude(merge_ranks(ranks)[0])


def rank_run(rank: int, wait: float, host: str) -> RankRun:
    """What one rank measured: its steps were not timed. One that hardly waits loads faster than the training."""
    trial, one_epoch = traced_trial(), {"epochs": ONE_EPOCH}
    faster = 1 if wait > 0.05 else 4
    costs = {name: replace(cost, wall_s=(cost.wall_s or 0.0) / faster) for name, cost in (trial.stages or {}).items()}
    trial = replace(
        trial,
        stages=costs,
        data_wait_share=wait,
        epochs=None,
        time_to_first_batch_s=0.1,
        rank=rank,
        host=host,
        not_measured={**trial.not_measured, **one_epoch},
    )
    return RankRun(rank, measured_by((trial,)), Readings())


def traced() -> RunRecord:
    return profile_of(traced_trial(), (Gpu(0, "GPU-0", "NVIDIA H200", 141 * GIB),))


def untraced() -> RunRecord:
    return profile_of(measured_trial())


def keeps_up() -> RunRecord:
    """The loader keeps up: data wait is 1% of the time."""
    return profile_of(replace(measured_trial(), data_wait_share=0.01))


def generator() -> RunRecord:
    """A generator has neither a configuration nor workers, and its loop marked nothing."""
    reasons = dict.fromkeys(("stages", "workers", "sample_times"), NO_WORKERS)
    reasons["step_stages"] = "no stage was marked"
    trial = replace(
        measured_trial({}),
        step_stages=None,
        epochs=Epochs(
            begun=1, boundary_s=None, boundary_max_s=None, not_measured={"boundary_s": "there was one epoch"}
        ),
        not_measured=reasons,
    )
    return profile_of(trial, description="generator")


def main_process() -> RunRecord:
    """A loader without workers loads where the loop runs."""
    trial = replace(
        traced_trial(),
        config={"batch_size": 32, "num_workers": 0},
        workers=None,
        not_measured={"workers": "without workers the main process loads"},
    )
    return profile_of(trial)


def nothing_measured() -> RunRecord:
    failure = Failure("no_batches", NO_BATCHES, "Let the loop run on, or lower warmup.")
    return profile_of(Trial(role="profile", id="train", config=CONFIG, round=1, status="failed", failure=failure))


def hostile_profile() -> RunRecord:
    """Every name of the user's tries to be something else, or is far too long."""
    trial = traced_trial()
    assert trial.stages
    assert trial.workers
    assert trial.sample_times
    cost = StageCost(0.001, 0.001)
    evil = replace(
        trial,
        config={HOSTILE: LONG},
        stages={**trial.stages, HOSTILE: cost, LONG: cost},
        stage_parts={f"transform/{HOSTILE}": cost, f"decode/{LONG}": cost},
        step_stages={HOSTILE: cost, LONG: cost},
        workers=replace(trial.workers, pss_bytes=None, not_measured={"pss_bytes": HOSTILE}),
        sample_times=replace(
            trial.sample_times,
            slowest=(
                slow_sample(0, path=f"{FOLDER}{HOSTILE.replace('/', '')}", stage=HOSTILE),
                slow_sample(1, path=LONG, stage=LONG),
                slow_sample(2, path=None, index=None, not_measured={"path": HOSTILE}),
            ),
        ),
        sampled=HOSTILE,
        epochs=None,
        not_measured={"epochs": HOSTILE, "data_wait": HOSTILE},
        data_wait=None,
    )
    return replace(profile_of(evil, description=HOSTILE), name=HOSTILE + LONG)


def attached() -> RunRecord:
    """A training that was watched from outside, in a container that hides its GPU."""
    trial = Trial(
        role="profile",
        id="attach",
        config={"num_workers": 2},
        round=1,
        status="completed",
        consumer="loop",
        data_wait_share=0.58,
        steady_s=10.0,
        cpu_percent_of_allotted=71.0,
        workers=WorkerStates(on_cpu_share=0.78, run_queue_share=0.2, blocked_share=0.02, count=2),
        not_measured={"samples_per_s": f"batches are {OUTSIDE}", "stages": f"the cost of a sample is {OUTSIDE}"},
    )
    measured = measured_by((trial,), description="process 12345: python train.py")
    environment = replace(measured.environment, not_measured={"gpus": NONE_USED})
    return conclude(replace(measured, environment=environment))
