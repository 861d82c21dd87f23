"""Batches as a run would keep them, made up in memory: a few workers, one of which meets a straggler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from run_profiles import traced

from loaderbench.records import BatchTimes, Readings, RunRecord

STRAGGLER = 30
STEP_S, MAKE_S, SLOW_S = 0.010, 0.018, 0.4
AHEAD = 2  # batches that a worker makes before they are asked for
STAGES = {"decode": 0.008, "read": 0.004, "sample": 0.001, "collate": 0.002}
EIGHT_STAGES = {f"own {number}": 0.001 for number in range(6)} | {"decode": 0.01, "collate": 0.001}


def batches(
    count: int = 60,
    epochs: int = 1,
    straggler: int | None = STRAGGLER,
    workers: int = 2,
    stages_s: Mapping[str, float] = STAGES,
) -> Iterator[BatchTimes]:
    """A loop whose steps take 10 ms, fed by workers that take 18 ms for a batch."""
    now_s, got_s = 0.0, [0.0] * (count * epochs)
    free_s = [0.1 + 0.02 * one for one in range(workers)]
    for number in range(count * epochs):
        epoch, batch = divmod(number, count)
        worker = batch % workers
        asked_s = now_s
        if batch == 0 and epoch:
            asked_s = now_s + 0.05
            free_s = [asked_s + 0.1 + 0.02 * one for one in range(workers)]
        allowed_s = got_s[number - AHEAD * workers] if batch >= AHEAD * workers else free_s[worker]
        began_s = max(free_s[worker], allowed_s)
        made_s = began_s + (SLOW_S if batch == straggler and epoch == 0 else MAKE_S)
        free_s[worker] = made_s
        got_s[number] = max(asked_s, made_s + 0.001)
        now_s = got_s[number] + STEP_S
        yield BatchTimes(
            epoch=epoch,
            batch=batch,
            samples=8,
            steady=batch > 0,
            asked_s=asked_s,
            got_s=got_s[number],
            wait_s=got_s[number] - asked_s,
            ended_s=now_s,
            worker=worker,
            began_s=began_s,
            collate_began_s=made_s - 0.002,
            made_s=made_s,
            stages_s=dict(stages_s),
        )


def readings(run: RunRecord, *own: BatchTimes) -> Readings:
    """What a run keeps in addition to its record."""
    found = Readings()
    found.keep_batches(run.trials[0].id, own or batches())
    return found


def with_straggler() -> tuple[RunRecord, Readings]:
    run = traced()
    return run, readings(run)
