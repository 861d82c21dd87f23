"""Runs as a session would record them, made up in memory: every state the report has to bear."""

import math
from dataclasses import replace
from itertools import product

from run_recommendations import NO_ACCELERATOR, recommendations

from loaderbench.records import (
    Baseline,
    Best,
    Ceiling,
    Config,
    Configuration,
    DatasetSummary,
    Environment,
    Failure,
    Gpu,
    GpuUse,
    Interval,
    Noise,
    Overhead,
    PlanSummary,
    RunRecord,
    StageCost,
    TimelinePoint,
    Trial,
    Verdict,
    WorkerStates,
)

GIB = 2**30
RATES = {0: 212.0, 1: 405.0, 2: 812.0, 3: 640.0}


def spread(est: float, share: float = 0.03) -> Interval:
    return Interval(est, est * (1 - share), est * (1 + share))


def environment(gpus: tuple[Gpu, ...] = (), cpus: float = 2) -> Environment:
    return Environment(
        cpus_allotted=cpus,
        cpus_online=64,
        cpu_model="AMD EPYC 9654 96-Core Processor",
        memory_total_bytes=8 * GIB,
        memory_limit_bytes=None,
        shm_total_bytes=4 * GIB,
        open_files_limit=1024,
        platform="Linux-6.1-x86_64-with-glibc2.36",
        python="3.11.7",
        versions={"torch": "2.15.0", "torchvision": "0.29.2", "pillow": "13.0.0"},
        start_method="fork",
        gpus=gpus,
        not_measured={} if gpus else {"gpus": NO_ACCELERATOR},
    )


def trial(config: Config, round_: int, number: int, rate: float, gpus: tuple[Gpu, ...] = ()) -> Trial:
    wobble = 1 + 0.02 * math.sin(number * 2.3)
    workers = config.get("num_workers")
    return Trial(
        role="sweep",
        id=f"r{round_}-c{number:02d}",
        config=config,
        round=round_,
        status="completed",
        samples_per_s=rate * wobble,
        data_wait_share=max(0.02, 1 - rate / 1000) * wobble,
        time_to_first_batch_s=0.4 + 0.1 * round_,
        batches=80,
        samples=80 * 32,
        warmup_batches=12,
        steady_s=3.7,
        stages={"decode": StageCost(0.0021, 0.0023)},
        workers=WorkerStates(on_cpu_share=0.96, run_queue_share=0.03, blocked_share=0.01),
        cpu_percent_of_allotted=min(99.0, 40 + rate / 15),
        rss_bytes=int((0.6 + 0.4 * int(workers or 0)) * GIB),
        pss_bytes=int((0.5 + 0.2 * int(workers or 0)) * GIB),
        shm_peak_bytes=int(48 * 2**20 * int(workers or 0)) or None,
        gpus=tuple(GpuUse(g.index, g.uuid, 55.0 + rate / 200, 11 * GIB, g.memory_total_bytes) for g in gpus),
        reference_decode_before_s=0.0021,
        reference_decode_after_s=0.0022,
        started_at="2026-03-12T14:03:10+00:00",
        duration_s=5.2,
        log=f"logs/r{round_}-c{number:02d}.log",
        not_measured={"shm_peak_bytes": "without workers no batch is shared"} if not workers else {},
    )


def configuration(config: Config, trials: list[Trial], rank: int, tied: bool, gpu: bool = False) -> Configuration:
    rate = sum(t.samples_per_s or 0 for t in trials) / len(trials)
    wait = sum(t.data_wait_share or 0 for t in trials) / len(trials)
    one = len(trials) == 1
    return Configuration(
        config=config,
        samples_per_s=Interval(rate, None, None) if one else spread(rate),
        data_wait_share=Interval(wait, None, None) if one else spread(wait, 0.05),
        trials=tuple(t.id for t in trials),
        rank=rank,
        tied_with_best=tied,
        time_to_first_batch_s=Interval(0.6, None, None) if one else Interval(0.6, 0.5, 0.7),
        cpu_percent_of_allotted=trials[0].cpu_percent_of_allotted,
        rss_bytes=trials[0].rss_bytes,
        pss_bytes=trials[0].pss_bytes,
        shm_peak_bytes=trials[0].shm_peak_bytes,
        gpu_utilization_percent=61.0 if gpu else None,
        gpu_memory_used_bytes=11 * GIB if gpu else None,
        not_measured={}
        if gpu
        else {"gpu_utilization_percent": NO_ACCELERATOR, "gpu_memory_used_bytes": NO_ACCELERATOR},
    )


def typical(rounds: int = 3, gpus: tuple[Gpu, ...] = (), cpus: float = 2) -> RunRecord:
    """Two cores, no accelerator, JPEGs: the input bounds it, two workers are best, pinning collapsed."""
    pin = [False, True] if gpus else [False]
    configs: list[Config] = [
        {"batch_size": b, "num_workers": w, "pin_memory": p} for b, w, p in product((32, 128), RATES, pin)
    ]
    rate = {id(c): RATES[int(c["num_workers"] or 0)] * (1.02 if c["batch_size"] == 128 else 1) for c in configs}
    trials = [trial(c, r, i, rate[id(c)], gpus) for r in range(1, rounds + 1) for i, c in enumerate(configs)]
    by_rate = sorted(configs, key=lambda c: -rate[id(c)])
    configurations = [
        configuration(
            c,
            [t for t in trials if t.config == c],
            by_rate.index(c) + 1,
            rounds > 2 and rate[id(c)] > 800,
            bool(gpus),
        )
        for c in configs
    ]
    best, base = next(c for c in configurations if c.rank == 1), configurations[0]
    assert best.samples_per_s
    return RunRecord(
        name="images",
        suite={"name": "images", "consumer": {"kind": "emulated", "demand": 1000}, "measure": {"cache": "warm"}},
        environment=environment(gpus, cpus),
        dataset=DatasetSummary("512 photo-like JPEGs, imagenet sizes", files=512, classes=4, total_files=512),
        plan=PlanSummary(
            {"batch_size": [32, 128], "num_workers": [0, 1, 2, 3], "pin_memory": list(pin)},
            len(configs),
            rounds,
            len(trials),
            tuple(configs),
            base.config,
            "torch's defaults with the smallest batch size of the sweep",
            {} if gpus else {"pin_memory": "there is no accelerator, so that pinning memory does nothing"},
        ),
        started_at="2026-03-12T14:03:00+00:00",
        finished_at="2026-03-12T14:09:04+00:00",
        complete=True,
        consumer="emulated",
        trials=tuple(trials),
        configurations=tuple(configurations),
        best=Best(
            config=best.config,
            samples_per_s=best.samples_per_s,
            data_wait_share=best.data_wait_share,
            ties=tuple(c.config for c in configurations if c.tied_with_best and c is not best),
            why_this_one="the fewest workers of two configurations that cannot be told apart",
            gain=Interval(3.9, 3.7, 4.1) if rounds > 1 else Interval(3.9, None, None),
        ),
        baseline=Baseline(
            config=base.config,
            samples_per_s=base.samples_per_s,
            data_wait_share=base.data_wait_share,
            why_this_one="torch's defaults with the smallest batch size of the sweep",
        ),
        ceiling=Ceiling(samples_per_s=1000.0, headspace=0.79, basis="the emulated consumer's demand"),
        verdict=Verdict(
            bound="input",
            stage="decode",
            limit="cpu",
            headline="The consumer waits for data 79% of each step (75\u201383%): decode, both allotted CPUs full.",
            evidence=(
                "Decode takes 2.1 ms of CPU time of the 2.6 ms a sample costs.",
                "With two workers the allotted CPUs are 94% busy; a third lowers samples/s by 21%.",
            ),
            confidence="high",
        ),
        recommendations=recommendations(tuple(best.trials), best.config),
        overhead=Overhead(per_batch_s=0.0000042, share_of_wall=0.0001, monitor_cpu_share=0.011),
        noise=Noise(reference_decode_spread=1.14, aa_difference=Interval(1.01, 0.98, 1.04)),
        warnings=("The reference decode varied by 14% over the run: differences below that may be noise.",),
        notes=(),
        loaderbench_version="0.1.0",
    )


def gpu_run() -> RunRecord:
    """Two devices, sixteen CPUs."""
    gpus = tuple(Gpu(i, f"GPU-{i}", "NVIDIA H200", 141 * GIB) for i in range(2))
    return typical(gpus=gpus, cpus=16)


def one_round() -> RunRecord:
    return typical(rounds=1)


def failed_trial(config: Config, number: int, message: str, kind: str = "shared_memory_full") -> Trial:
    return Trial(
        role="sweep",
        id=f"r1-c{number:02d}",
        config=config,
        round=1,
        status="failed",
        log=f"logs/r1-c{number:02d}.log",
        failure=Failure(kind, message, "Run the container with --shm-size=2g, or use fewer workers."),
    )


def all_failed() -> RunRecord:
    run = typical()
    configs = [c.config for c in run.configurations]
    message = (
        "Traceback (most recent call last):\nRuntimeError: unable to allocate shared memory(shm) for file </torch_1>"
    )
    trials = [failed_trial(c, i, message) for i, c in enumerate(configs)]
    trials[-1] = failed_trial(configs[-1], len(configs) - 1, "Killed.", "worker_killed")
    return replace(
        run,
        trials=tuple(trials),
        configurations=tuple(
            Configuration(
                config=t.config,
                samples_per_s=None,
                data_wait_share=None,
                trials=(t.id,),
                rank=None,
                tied_with_best=False,
            )
            for t in trials
        ),
        best=None,
        baseline=replace(run.baseline, samples_per_s=None, data_wait_share=None),
        ceiling=None,
        verdict=Verdict(
            bound="unknown",
            stage=None,
            limit=None,
            headline="No trial gave a measurement.",
            evidence=(),
            confidence="low",
        ),
        recommendations=(),
        overhead=None,
        noise=Noise(None, None),
        warnings=("Every trial failed.",),
    )


def partly_failed() -> RunRecord:
    """The largest worker count fails in each round, another configuration in one."""
    run = typical()
    bad = {c.config["num_workers"] == 3 and c.config["batch_size"] == 128: c for c in run.configurations}[True]
    trials = tuple(
        replace(t, status="failed", samples_per_s=None, failure=Failure("worker_killed", "Killed.", "Out of memory."))
        if t.id in bad.trials or t.id == "r2-c01"
        else t
        for t in run.trials
    )
    dead = replace(bad, samples_per_s=None, data_wait_share=None, rank=None, cpu_percent_of_allotted=None)
    return replace(run, trials=trials, configurations=tuple(dead if c is bad else c for c in run.configurations))


def one_trial() -> RunRecord:
    run = typical(rounds=1)
    only = replace(run.configurations[0], rank=1)
    assert run.best
    assert only.samples_per_s
    return replace(
        run,
        plan=PlanSummary(
            {"batch_size": [32], "num_workers": [0], "pin_memory": [False]}, 1, 1, 1, (only.config,), only.config, ""
        ),
        trials=run.trials[:1],
        configurations=(only,),
        best=replace(run.best, config=only.config, samples_per_s=only.samples_per_s, ties=(), gain=None),
        recommendations=(),
        noise=Noise(None, None),
    )


def interrupted() -> RunRecord:
    run = typical()
    kept = run.configurations[:5]
    ids = {id_ for c in kept for id_ in c.trials[:1]}
    trials = tuple(t for t in run.trials if t.id in ids)
    configurations = tuple(
        replace(c, trials=c.trials[:1], samples_per_s=Interval(c.samples_per_s.est, None, None))
        for c in kept
        if c.samples_per_s
    )
    return replace(run, complete=False, trials=trials, configurations=configurations)


def timeline(run: RunRecord, seconds: float = 8.0, per_second: int = 10) -> list[TimelinePoint]:
    """What monitors and recorder would have read of every completed trial."""
    points = []
    for t in run.trials:
        if t.status != "completed":
            continue
        for i in range(int(seconds * per_second)):
            s = i / per_second
            readings = {
                "cpu_percent_of_allotted": (t.cpu_percent_of_allotted or 50) + 4 * math.sin(s),
                "rss_bytes": 1.2 * GIB + 1e7 * s,
                "shm_bytes": 4e7 + 1e7 * math.cos(s),
                "data_wait_s": 0.02 + 0.015 * abs(math.sin(3 * s)),
                "disk_read_bytes_per_s": 1e6 * abs(math.sin(s)),
            }
            for gpu in t.gpus:
                readings[f"gpu{gpu.index}_utilization_percent"] = 60 + 20 * math.sin(s + gpu.index)
                readings[f"gpu{gpu.index}_memory_used_bytes"] = 11 * GIB
            points += [TimelinePoint(t.id, s, metric, value) for metric, value in readings.items()]
    return points


def without_best() -> RunRecord:
    """As an old run without a winner was saved: its first configuration is tied with a best that there is not."""
    run = typical()
    configurations = tuple(replace(c, tied_with_best=c.rank == 1) for c in run.configurations)
    return replace(run, best=None, configurations=configurations, not_measured={"best": "fewer than three rounds"})


def cheapest_is_best(rank: int) -> RunRecord:
    """The best is one of many ties and far from the fastest."""
    run = typical()
    best = next(c for c in run.configurations if c.rank == rank)
    assert run.best
    assert best.samples_per_s
    return replace(
        run,
        configurations=tuple(replace(c, tied_with_best=(c.rank or 0) <= rank) for c in run.configurations),
        best=replace(run.best, config=best.config, samples_per_s=best.samples_per_s),
    )
