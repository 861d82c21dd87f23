"""Waits of a loading thread for other threads of its process count as work, and other waits do not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from machine import TWO_CPUS
from test_gathering import states, trial, waiting_for

from loaderbench.diagnosis.cause import find_cause
from loaderbench.diagnosis.gathering import gather
from loaderbench.records import CodeLooks, MachineUse, StageCost, Trial, WorkerStates

WAITS_FOR_THREADS = replace(
    states(0.2, lock=0.75, running=0.2, queue=0.05), other_threads_cpu_share=0.8, runnable_threads=1.0
)
OF_ARROW = waiting_for("pyarrow/parquet/core.py", "table = self.file.read_row_group(index)")


def loading(workers: WorkerStates, looks: CodeLooks | None) -> Trial:
    return trial(
        1,
        config={"num_workers": 1},
        samples_per_s=100.0,
        stages={"sample": StageCost(2e-3, 9.5e-3)},
        workers=workers,
        code_looks=looks,
        machine=MachineUse(cpus=2, own_cpus=1.0, busy_cpus=1.0, throttled_share=0.0),
    )


OF_A_POOL = waiting_for("concurrent/futures/_base.py", "images = list(pool.map(decode, paths))")


@pytest.mark.parametrize("looks", [OF_ARROW, OF_A_POOL], ids=["of Arrow", "of a pool"])
def test_waits_for_threads_of_the_worker_are_work(looks: CodeLooks) -> None:
    found = gather([loading(WAITS_FOR_THREADS, looks)], TWO_CPUS)
    assert found is not None
    assert found.loads is not None
    assert found.loads.on_cpu_share == pytest.approx(0.2 + 0.6)
    assert found.loads.blocked_share == pytest.approx(0.2)
    assert found.loads.other_threads_cpu_share == pytest.approx(0.2)
    cause = find_cause(found)
    assert cause is not None
    assert (cause.stage, cause.limit) == ("sample", "workers")


@pytest.mark.parametrize(
    ("workers", "looks"),
    [
        (WAITS_FOR_THREADS, None),
        (WAITS_FOR_THREADS, waiting_for("mylib/core.py", "with self._lock:")),
        (replace(WAITS_FOR_THREADS, other_threads_cpu_share=0.2, runnable_threads=0.4), OF_ARROW),
        (replace(WAITS_FOR_THREADS, blocked_on={"storage": 0.75, "running": 0.2, "queue": 0.05}), OF_ARROW),
        (replace(WAITS_FOR_THREADS, are_threads=True, blocked_on={"device": 0.8, "running": 0.2}), OF_ARROW),
    ],
    ids=["no stacks", "a lock", "idle threads", "storage", "threads as workers"],
)
def test_other_waits_stay_waits(workers: WorkerStates, looks: CodeLooks | None) -> None:
    found = gather([loading(workers, looks)], TWO_CPUS)
    assert found is not None
    assert found.loads is not None
    assert found.loads.on_cpu_share == pytest.approx(0.2)
    assert found.loads.blocked_share == pytest.approx(0.8)


def test_the_work_of_threads_belongs_to_the_stage_that_waits_for_them() -> None:
    stages = {"sample": StageCost(0.1e-3, 2e-3), "collate": StageCost(0.2e-3, 0.2e-3)}
    found = gather([replace(loading(WAITS_FOR_THREADS, OF_A_POOL), stages=stages)], TWO_CPUS)
    assert found is not None
    assert found.cpu_s["collate"] == pytest.approx(0.2e-3)
    assert found.cpu_s["sample"] == pytest.approx(0.1e-3 + 0.6 / 0.95 * 2.2e-3)
    cause = find_cause(found)
    assert cause is not None
    assert (cause.stage, cause.limit) == ("sample", "workers")


def test_threads_that_wait_for_a_cpu_are_waited_for_as_well() -> None:
    queued = replace(WAITS_FOR_THREADS, other_threads_cpu_share=0.3, runnable_threads=1.2)
    found = gather([loading(queued, OF_A_POOL)], TWO_CPUS)
    assert found is not None
    assert found.loads is not None
    assert found.loads.on_cpu_share == pytest.approx(0.2 + 0.3 * 0.75)
    assert found.loads.run_queue_share == pytest.approx(0.7 * 0.75)
    assert found.loads.blocked_share == pytest.approx(0.8 - 0.75)


def test_a_main_process_sees_few_of_its_waits_for_threads() -> None:
    main = replace(states(0.1, lock=0.1, device=0.1, running=0.8), other_threads_cpu_share=1.6, runnable_threads=1.8)
    made = replace(in_the_main_process(lock=0.1, wait_share=0.9), main_process=main)
    found = gather([made], TWO_CPUS)
    assert found is not None
    assert found.loads is not None
    assert found.loads.blocked_share == pytest.approx(0.1 + 0.1)  # its steps, and what it was seen in


def in_the_main_process(lock: float, wait_share: float) -> Trial:
    """A loop without workers that waits at a lock for this share of its time, while another thread works."""
    main = replace(states(0.1, lock=lock, running=1 - lock), other_threads_cpu_share=0.85, runnable_threads=1.0)
    made = replace(loading(main, OF_A_POOL), config={"num_workers": 0}, data_wait_share=wait_share, workers=None)
    return replace(made, main_process=main, stages={"sample": StageCost(0.5e-3, 9e-3)})


def test_a_main_process_waits_for_its_threads_while_they_work() -> None:
    found = gather([in_the_main_process(lock=0.85, wait_share=0.95)], TWO_CPUS)
    assert found is not None
    cause = find_cause(found)
    assert cause is not None
    assert (cause.stage, cause.limit) == ("sample", "workers")


def test_threads_of_a_training_step_are_not_the_work_of_its_loader() -> None:
    found = gather([in_the_main_process(lock=0.85, wait_share=0.1)], TWO_CPUS)
    assert found is not None
    assert found.cpu_s == {"sample": 0.5e-3}


def test_a_line_that_joins_paths_or_reads_blocks_waits_for_no_thread() -> None:
    for text in ("read(os.path.join(root, name))", "self.file.read_block(index)", "clock(1)"):
        found = gather([loading(WAITS_FOR_THREADS, waiting_for("lib/core.py", text))], TWO_CPUS)
        assert found is not None
        assert found.loads is not None
        assert found.loads.on_cpu_share == pytest.approx(0.8)
