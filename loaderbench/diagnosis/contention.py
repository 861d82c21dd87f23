"""The cost of more workers: CPU time and worker time per sample, relative to the fewest workers of the same loader.

Growing CPU time per sample indicates contention for caches and memory. Worker time that grows beyond what CPU time and
CPUs explain indicates another shared resource: a lock, the GIL, a disk. Source: Gunther, Guerrilla Capacity Planning,
2007 (contention and coherency are terms of its Universal Scalability Law).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from loaderbench.ranks import process_count
from loaderbench.records import Config, Contention, Interval, Reasons, Trial
from loaderbench.statistics.intervals import rate_interval, ratio_interval

LOADER_LIMITS = 0.2
"""Minimum data wait at which the loader limits the rate; below it, workers sometimes wait for room in the queue."""

_NOT_THE_LIMIT = f"data wait below {LOADER_LIMITS:.0%}: the consumer limits the rate"
_NO_STAGES = "stages in the workers not timed"
_NO_ROUND = "never measured in the same round"

ByRound = dict[int, float]


def describe_contention(config: Config | None, trials: Sequence[Trial], cpus_allotted: float) -> tuple[Contention, ...]:
    """One record per worker count (1 or more), otherwise configured as `config`; empty if there is only one count."""
    alike = [trial for trial in trials if config is not None and _same_but_workers(trial.config, config)]
    counts = sorted({_workers(trial) for trial in alike if trial.status == "completed" and _workers(trial) > 0})
    walls = {count: _wall_times(alike, count) for count in counts}
    cpus = {count: _cpu_times(alike, count) for count in counts}
    known = [count for count in counts if walls[count] or cpus[count]]
    if len(known) < 2:
        return ()
    least = known[0]
    blocked = _blocked(walls[least], cpus[least], _queues(alike, least))
    cores = cpus_allotted / process_count(config or {})
    bounds = {count: _expected_wall(count, blocked, cpus[count], _queues(alike, count), cores) for count in known}
    return tuple(_contention(count, least, walls, cpus, bounds[count]) for count in known)


def _same_but_workers(one: Config, other: Config) -> bool:
    names = one.keys() - {"num_workers"}
    return names == other.keys() - {"num_workers"} and all(one[name] == other[name] for name in names)


def _workers(trial: Trial) -> int:
    found = trial.config.get("num_workers")
    return found if isinstance(found, int) and not isinstance(found, bool) else 0


def _of_all_ranks(workers: int, trial: Trial) -> int:
    return workers * trial.processes


def _wall_times(trials: Sequence[Trial], workers: int) -> ByRound:
    """Seconds of all workers per sample, in rounds in which the loader limits the rate."""
    return {
        trial.round: _of_all_ranks(workers, trial) / trial.samples_per_s
        for trial in trials
        if _workers(trial) == workers and trial.samples_per_s and (trial.data_wait_share or 0) >= LOADER_LIMITS
    }


def _cpu_times(trials: Sequence[Trial], workers: int) -> ByRound:
    found: ByRound = {}
    for trial in trials:
        if _workers(trial) == workers and trial.stages and trial.status == "completed":
            cpu_s = math.fsum(cost.cpu_s or 0.0 for cost in trial.stages.values())
            found |= {trial.round: cpu_s} if cpu_s > 0 else {}
    return found


def _queues(trials: Sequence[Trial], workers: int) -> ByRound:
    """Seconds of all workers per sample in which they were runnable while every CPU was taken, by any process."""
    return {
        trial.round: _of_all_ranks(workers, trial)
        / trial.samples_per_s
        * (trial.workers.run_queue_share if trial.workers else 0.0)
        for trial in trials
        if _workers(trial) == workers and trial.samples_per_s
    }


def _blocked(wall: ByRound, cpu: ByRound, queue: ByRound) -> ByRound:
    """Seconds per sample in which a worker neither runs nor is runnable."""
    return {number: max(0.0, wall[number] - cpu[number] - queue[number]) for number in wall.keys() & cpu.keys()}


def _expected_wall(workers: int, blocked: ByRound, cpu: ByRound, queue: ByRound, cores: float) -> ByRound:
    """The expected wall time: blocked time as with the fewest workers, CPU and run-queue time as measured."""
    return {
        number: max(blocked[number] + cpu[number] + queue[number], workers * cpu[number] / cores)
        for number in blocked.keys() & cpu.keys() & queue.keys()
    }


def _contention(
    workers: int, least: int, walls: dict[int, ByRound], cpus: dict[int, ByRound], explained: ByRound
) -> Contention:
    wall, cpu = walls[workers], cpus[workers]
    compared = workers != least
    fields: dict[str, Interval | None] = {
        "wall_s_per_sample": rate_interval(list(wall.values())) if wall else None,
        "cpu_s_per_sample": rate_interval(list(cpu.values())) if cpu else None,
        "wall_ratio": ratio_interval(wall, walls[least]) if compared else None,
        "cpu_ratio": ratio_interval(cpu, cpus[least]) if compared else None,
        "beyond_cores": ratio_interval(wall, explained) if compared else None,
    }
    return Contention(workers=workers, **fields, not_measured=_reasons(fields, walls[least], cpus[least], compared))


def _reasons(fields: dict[str, Interval | None], wall: ByRound, cpu: ByRound, compared: bool) -> Reasons:
    no_wall = fields["wall_s_per_sample"] is None or not wall
    no_cpu = fields["cpu_s_per_sample"] is None or not cpu
    why = {
        "wall_s_per_sample": _NOT_THE_LIMIT,
        "cpu_s_per_sample": _NO_STAGES,
        "wall_ratio": _NOT_THE_LIMIT if no_wall else _NO_ROUND,
        "cpu_ratio": _NO_STAGES if no_cpu else _NO_ROUND,
        "beyond_cores": _NOT_THE_LIMIT if no_wall else _NO_STAGES if no_cpu else _NO_ROUND,
    }
    if not compared:
        why |= dict.fromkeys(("wall_ratio", "cpu_ratio", "beyond_cores"), "reference for the other rows")
    return {name: why[name] for name, value in fields.items() if value is None}
