"""Which workers belong to a loader that is iterated over, by what the kernel says of them."""

from __future__ import annotations

from pathlib import Path

from loaderbench.attach.workers import IdleLoaders

AT_QUEUE, SLEEPS, RUNS = "do_poll", "hrtimer_nanosleep", "0"
TRAIN, VALIDATION = [2, 3], [4, 5]


def worker(root: Path, pid: int, wchan: str = AT_QUEUE, blocked: int = 5, began_s: float = 1.0) -> None:
    """A worker in a folder that looks like /proc."""
    folder = root / str(pid)
    folder.mkdir(exist_ok=True)
    fields = ["S", *["0"] * 18, str(int(100 * began_s)), *["0"] * 20]
    (folder / "stat").write_text(f"{pid} (pt_data_worker) {' '.join(fields)}")
    (folder / "status").write_text(f"voluntary_ctxt_switches:\t{blocked}\n")
    (folder / "wchan").write_text(wchan)


def workers(root: Path, blocked: int = 5) -> None:
    """Two of a training that block ever more often, and two of a validation that began 30 s later and wait."""
    for number, pid in enumerate(TRAIN):
        worker(root, pid, blocked=blocked, began_s=1.0 + number / 50)
    for number, pid in enumerate(VALIDATION):
        worker(root, pid, began_s=31.0 + number / 50)


def test_workers_of_a_loader_that_is_not_iterated_over_are_left_out_from_the_second_look_on(tmp_path: Path) -> None:
    loaders = IdleLoaders(str(tmp_path))
    workers(tmp_path)
    assert loaders.at_work([*TRAIN, *VALIDATION], 0.0) == [*TRAIN, *VALIDATION]
    workers(tmp_path, blocked=50)
    assert loaders.at_work([*TRAIN, *VALIDATION], 0.25) == TRAIN
    assert loaders.idle == set(VALIDATION)


def test_one_worker_at_work_is_enough_for_its_loader(tmp_path: Path) -> None:
    loaders = IdleLoaders(str(tmp_path))
    workers(tmp_path)
    loaders.at_work([*TRAIN, *VALIDATION], 0.0)
    worker(tmp_path, TRAIN[0], SLEEPS)  # in a slow sample, for which the other has to wait
    assert loaders.at_work([*TRAIN, *VALIDATION], 0.25) == TRAIN
    worker(tmp_path, TRAIN[0])
    worker(tmp_path, VALIDATION[1], RUNS, began_s=31.02)
    assert loaders.at_work([*TRAIN, *VALIDATION], 0.5) == [*TRAIN, *VALIDATION], "the validation begins"
    assert not loaders.idle


def test_an_idle_worker_wakes_every_five_seconds(tmp_path: Path) -> None:
    loaders = IdleLoaders(str(tmp_path))
    workers(tmp_path)
    loaders.at_work([*TRAIN, *VALIDATION], 0.0)
    workers(tmp_path, blocked=50)
    worker(tmp_path, VALIDATION[0], blocked=5 + 4, began_s=31.0)
    assert loaders.at_work([*TRAIN, *VALIDATION], 10.0) == TRAIN


def test_where_no_worker_works_none_is_left_out(tmp_path: Path) -> None:
    loaders = IdleLoaders(str(tmp_path))
    workers(tmp_path)
    for now_s in (0.0, 0.25, 0.5):
        assert loaders.at_work([*TRAIN, *VALIDATION], now_s) == [*TRAIN, *VALIDATION]
    assert loaders.at_work([], 0.75) == []
    assert loaders.at_work([99], 1.0) == [99], "it is gone"


def test_workers_that_start_later_are_those_of_a_loader_that_somebody_iterates_over(tmp_path: Path) -> None:
    loaders = IdleLoaders(str(tmp_path))
    for pid in VALIDATION:
        worker(tmp_path, pid)
    loaders.at_work(VALIDATION, 0.0)
    for pid in TRAIN:
        worker(tmp_path, pid, began_s=50.0)
    assert loaders.at_work([*TRAIN, *VALIDATION], 0.25) == TRAIN
