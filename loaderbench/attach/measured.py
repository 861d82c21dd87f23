"""Turns observations of a training job into a run without conclusions: one trial, without a rate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version

from loaderbench.attach.job import Training
from loaderbench.attach.reading import IN_THREAD, NO_LOADER, LoopLooks
from loaderbench.attach.watch import TrainingWatch
from loaderbench.consumers import LOOP
from loaderbench.cpu_lists import cpu_list
from loaderbench.environment import describe_machine
from loaderbench.monitors import Window, cpu_percent, gpu_series, gpu_use, series, with_looks
from loaderbench.ranks import this_host
from loaderbench.recorder import completed_trial, with_reasons
from loaderbench.recorder.code_looks import TOO_FEW
from loaderbench.records import (
    Config,
    DatasetSummary,
    Environment,
    Failure,
    KernelLooks,
    LoaderInside,
    LoopTimes,
    Measured,
    PlanSummary,
    Readings,
    ResourceUse,
    TimelinePoint,
    Trial,
)

TRIAL = "attach"
OUTSIDE = "not visible from outside the process"
ONE_THREAD = "no workers and no stacks, so loading and training look the same"
AT_A_LOCK = "the main thread waits for a lock, maybe for a thread"
HIDDEN = "the kernel hides what threads wait for"

BY_STACKS = "data wait: share of main-thread stacks inside next()"
BY_KERNEL = "data wait: share of checks in which the main thread waited for a worker's batch"
NO_PSS = "proportional memory (PSS) is not readable"
OWN_VERSIONS = "Python and package versions are those of loaderbench, not of the training"


@dataclass(frozen=True)
class Seen:
    """The observations of one training: what the kernel and its stacks showed, and when.

    `stopped` says why the training was watched for less time than requested, and `stopped_by` is the signal that ended
    the watch.
    """

    watch: TrainingWatch
    stacks: LoopLooks
    looked_s: float
    began_at: str
    ended_at: str
    stopped: str = ""
    stopped_by: int | None = None

    @property
    def training(self) -> Training:
        """The training that was watched."""
        return self.watch.training

    @property
    def wait_share(self) -> float | None:
        """Data wait by stacks, else by the kernel for a main process that has workers."""
        if self.stacks.wait_share is not None or self.stacks.why_not == IN_THREAD:
            return self.stacks.wait_share
        return self.watch.main_looks.wait_share if self.watch.most_workers else None


def measured_of(seen: Seen, name: str) -> tuple[Measured, Readings]:
    """One training as a run without conclusions."""
    watch = seen.watch
    environment = describe_machine(OUTSIDE, watch.gpu_thread.gpus or watch.gpus, {"gpus": watch.no_gpu})
    environment = _of_training(environment, watch)
    trial = _trial(seen, environment)
    config = trial.config
    measured = Measured(
        name=name,
        suite={"name": name, "attach": seen.training.command},
        environment=environment,
        dataset=DatasetSummary(
            str(seen.training),
            not_measured=dict.fromkeys(("files", "classes", "total_files", "bad_files", "root"), OUTSIDE),
        ),
        plan=PlanSummary({axis: [value] for axis, value in config.items()}, 1, 1, 1, (config,), config, "as it runs"),
        started_at=seen.began_at,
        finished_at=seen.ended_at,
        complete=True,
        consumer=LOOP,
        trials=(trial,),
        kind="profile",
        notes=tuple(_notes(seen)),
        loaderbench_version=version("loaderbench"),
    )
    return measured, _readings(seen, environment)


def _of_training(environment: Environment, watch: TrainingWatch) -> Environment:
    """`environment` with the training's limits."""
    found, reasons = watch.allotted, dict(environment.not_measured)
    reasons.pop("memory_limit_bytes", None)
    reasons.pop("shm_total_bytes", None)
    if found.memory_bytes is None:
        reasons["memory_limit_bytes"] = "no cgroup memory limit"
    if found.shm_bytes is None:
        reasons["shm_total_bytes"] = "not readable"
    return replace(
        environment,
        cpus_allotted=found.cpus,
        cpus_allowed=cpu_list(watch.cpus),
        memory_limit_bytes=found.memory_bytes,
        shm_total_bytes=found.shm_bytes,
        not_measured=reasons,
    )


def _trial(seen: Seen, environment: Environment) -> Trial:
    watch = seen.watch
    config: Config = {"num_workers": watch.most_workers} if watch.most_workers or seen.stacks.inside else {}
    rank = seen.training.rank
    trial = Trial(
        id=TRIAL,
        role="profile",
        config=config,
        round=1,
        status="failed",
        consumer=LOOP,
        rank=rank,
        host="" if rank is None else this_host(),
    )
    if len(watch.samples) < 2 or watch.main_process.states() is None:
        failure = Failure("ended", f"process {seen.training.pid} ended before it could be read twice", _AGAIN)
        return with_reasons(replace(trial, failure=failure), "the process ended")
    return completed_trial(trial, _times(seen), _use(seen, environment), _inside(seen), default=OUTSIDE)


_AGAIN = "attach while the training runs"


def _times(seen: Seen) -> LoopTimes:
    why = seen.stacks.why_not or (HIDDEN if seen.watch.main_looks.shares is None else AT_A_LOCK)
    if not seen.watch.most_workers and why not in (NO_LOADER, IN_THREAD):
        why = f"{ONE_THREAD}; {why}"
    return LoopTimes(
        data_wait_share=seen.wait_share,
        steady_s=seen.looked_s,
        not_measured={"data_wait_share": why, "samples_per_s": f"batches are {OUTSIDE}"},
    )


def _inside(seen: Seen) -> LoaderInside:
    watch, looks = seen.watch, seen.watch.blocked_on()
    return LoaderInside(
        workers=with_looks(watch.workers.states(seen.stacks.senders), looks),
        main_process=with_looks(watch.main_process.states(), None if watch.most_workers else watch.main_looks.shares),
        machine=watch.machine.use(),
        stack_looks=seen.stacks.inside,
        kernel_looks=_kernel_looks(watch) if watch.most_workers else None,
        code_looks=seen.stacks.code,
        not_measured={
            "stages": f"the cost of a sample is {OUTSIDE}",
            "workers": watch.workers.why_not() if watch.most_workers else "no worker processes",
            "main_process": watch.main_process.why_not(),
            "machine": watch.machine.why_not(),
            "stack_looks": seen.stacks.why_not,
            "kernel_looks": "no worker processes",
            "code_looks": seen.stacks.why_not or TOO_FEW,
        },
    )


_HIDDEN = {
    "waits": "the main process was rarely seen to wait for a batch, or the kernel hides it",
    "bytes_per_wait": "the workers were never blocked, or the kernel hides it",
    "bytes_share": "the workers read too little, or files of one size",
}


def _kernel_looks(watch: TrainingWatch) -> KernelLooks:
    reads = watch.blocked_reads
    found = KernelLooks(waits=watch.awaited.shares, bytes_per_wait=reads.bytes_per_wait, bytes_share=reads.bytes_share)
    return replace(found, not_measured={name: why for name, why in _HIDDEN.items() if getattr(found, name) is None})


def _use(seen: Seen, environment: Environment) -> ResourceUse:
    samples = seen.watch.samples
    first, last = samples[0], samples[-1]
    elapsed_s = last.at_s - first.at_s
    before, after = first.tree.read_bytes, last.tree.read_bytes
    known = before is not None and after is not None and elapsed_s > 0
    read = max(0.0, (after - before) / elapsed_s) if known else None  # type: ignore[operator]
    window = Window(first.at_s, last.at_s)
    return ResourceUse(
        cpu_percent_of_allotted=cpu_percent(samples, environment.cpus_allotted),
        rss_bytes=max((size for one in samples if (size := one.tree.rss_bytes) is not None), default=None),
        pss_bytes=seen.watch.pss_bytes,
        disk_read_bytes_per_s=read,
        gpus=tuple(
            gpu_use(gpu, seen.watch.gpu_thread.readings, window, seen.watch.gpu_monitor.why_not(gpu.index))
            for gpu in seen.watch.gpus
        ),
        not_measured={
            "pss_bytes": NO_PSS if seen.watch.read_memory_once else "the watch ended before memory was read",
            "disk_read_bytes_per_s": "/proc/<pid>/io is not readable",
        },
    )


def _readings(seen: Seen, environment: Environment) -> Readings:
    samples = seen.watch.samples
    began_s = samples[0].at_s if samples else 0.0
    points = [*series(samples, environment.cpus_allotted), *gpu_series(seen.watch.gpu_thread.readings)]
    return Readings(TimelinePoint(TRIAL, round(at_s - began_s, 4), name, value) for at_s, name, value in points)


def _notes(seen: Seen) -> Iterator[str]:
    """Yield notes on how the training was observed."""
    yield f"seen from outside for {seen.looked_s:.0f} s; nothing in the process was changed"
    if seen.stacks.wait_share is not None:
        yield BY_STACKS
    elif seen.wait_share is not None:
        yield BY_KERNEL
    if seen.stacks.why_not:
        yield f"no stacks: {seen.stacks.why_not}"
    yield OWN_VERSIONS
    if seen.stopped:
        yield seen.stopped
