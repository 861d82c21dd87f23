"""What is measured of a loader within a budget."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler

from loaderbench.plan import make_plan
from loaderbench.suite import Suite
from loaderbench.tuning import Tuned, own_loader
from loaderbench.tuning.forked import Returned
from loaderbench.tuning.plan import FEWEST, ROUNDS, OwnLoop, TuneOrder, make_tune_plan
from loaderbench.tuning.tune import tune_loader

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")


@pytest.fixture(autouse=True)
def threads_of_torch() -> Iterator[None]:
    """Restored: a copy of a loader sets them in its process, which here is the test's."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def loader(workers: int = 0, samples: int = 1000, batch_size: int | None = 8, **arguments: object) -> DataLoader[int]:
    found = DataLoader(list(range(samples)), batch_size=batch_size, num_workers=workers, **arguments)  # type: ignore[arg-type]
    own_loader.keep(found, whole_epochs=False)
    return found


def order(budget_s: float = 120.0, demand: float | None = None, rate: float | None = None) -> TuneOrder:
    own = OwnLoop(samples_per_s=rate, step_s_per_sample=demand and 1 / demand)
    return TuneOrder(name="train", budget_s=budget_s, own=own, script=Path("train.py"))


def suite_for(loader: DataLoader[int], order: TuneOrder) -> Suite:
    return make_tune_plan(loader, order).loaded.suite


def test_numbers_of_numpy_are_taken_as_torch_takes_them() -> None:
    own = loader(np.int64(2), prefetch_factor=np.int64(3), persistent_workers=np.bool_(True))  # type: ignore[arg-type]
    found = suite_for(own, order())
    assert found.baseline == {"num_workers": 2, "prefetch_factor": 3, "persistent_workers": True}


def test_the_baseline_is_the_script_s_and_not_that_of_a_suite() -> None:
    plan = make_plan(
        make_tune_plan(loader(2), order()).loaded.suite, cpus_allotted=2, accelerator=False, consumer="none"
    )
    assert plan.baseline_why == "the script's current arguments"


@settings(deadline=None)
@given(
    st.integers(0, 40),
    st.floats(5, 600),
    st.one_of(st.none(), st.floats(1, 1e5)),
    st.one_of(st.none(), st.floats(1, 1e5)),
)
def test_the_present_arguments_are_the_baseline_and_are_measured(
    workers: int, budget_s: float, demand: float | None, rate: float | None
) -> None:
    suite = suite_for(loader(workers), order(budget_s, demand, rate))
    plan = make_plan(suite, cpus_allotted=2.0, accelerator=False, consumer=suite.consumer.kind)
    assert plan.baseline in plan.configurations
    assert plan.baseline["num_workers"] == workers
    assert len(suite.sweep["num_workers"]) >= FEWEST
    assert plan.rounds == ROUNDS
    assert plan.freed_s == 0, "the budget is for settings and fixes"
    assert plan.axes.keys() <= {"num_workers", "prefetch_factor", "persistent_workers"}
    assert suite.measure.timeout_s <= max(10.0, budget_s / 4)
    for config in plan.configurations:
        if not config["num_workers"]:
            assert not config.get("prefetch_factor")
            assert not config.get("persistent_workers")


def test_a_longer_budget_has_more_or_longer_trials() -> None:
    short, long = (suite_for(loader(), order(budget_s)) for budget_s in (10.0, 300.0))
    assert len(short.sweep["num_workers"]) <= len(long.sweep["num_workers"])
    assert short.measure.seconds < long.measure.seconds


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_that_import_everything_again_have_time_to(method: str) -> None:
    """Ten seconds were too few on a busy machine: a trial timed out while its two workers imported torch."""
    forked, other = (suite_for(loader(2, multiprocessing_context=each), order(8.0)) for each in ("fork", method))
    assert forked.measure.timeout_s == 10.0
    assert other.measure.timeout_s > 20.0
    assert len(other.sweep["num_workers"]) <= len(forked.sweep["num_workers"])


def test_a_slow_step_has_fewer_configurations() -> None:
    fast, slow = (suite_for(loader(2), order(20.0, demand)) for demand in (1e4, 50.0))
    assert len(slow.sweep["num_workers"]) < len(fast.sweep["num_workers"])


@pytest.mark.parametrize(
    ("samples", "rate", "budget_s", "whole"),
    [
        (1_000, 1000.0, 120.0, True),
        (1_000, 1000.0, 10.0, False),  # an epoch takes too long for it
        (1_000_000, 1000.0, 120.0, False),
        (1_000, None, 120.0, False),
    ],
)
def test_trials_take_whole_epochs_where_the_budget_allows_it_and_try_workers_that_persist(
    samples: int, rate: float | None, budget_s: float, whole: bool
) -> None:
    plan = make_tune_plan(loader(2, samples), order(budget_s, rate=rate))
    suite = plan.loaded.suite
    assert plan.whole_epochs is whole
    assert suite.sweep["persistent_workers"] == ([False, True] if whole else [False])
    assert suite.loader == {"batch_size": 8}


@pytest.mark.parametrize(("budget_s", "seconds"), [(70.0, 0.5), (200.0, 1.5)])
def test_a_trial_of_complete_epochs_is_planned_in_epochs(budget_s: float, seconds: float) -> None:
    """An epoch of a second: a steady state of 0.6 s would take one, and of 1.1 s two."""
    found = suite_for(loader(2, 1_000), order(budget_s, rate=1000.0))
    assert found.measure.seconds == seconds


def test_where_the_budget_is_too_small_for_both_all_but_the_present_have_workers_that_persist() -> None:
    plan = make_tune_plan(loader(2, 1_000), order(45.0, rate=1000.0))
    suite = plan.loaded.suite
    assert plan.whole_epochs
    assert (suite.sweep["persistent_workers"], suite.baseline["persistent_workers"]) == ([True], False)
    assert len(suite.sweep["num_workers"]) >= FEWEST
    configs = make_plan(suite, cpus_allotted=2.0, accelerator=False, consumer=suite.consumer.kind).configurations
    assert sum(not config.get("persistent_workers") for config in configs if config["num_workers"]) == 1


@pytest.mark.parametrize(
    ("cpu_s", "host_s", "threads"),
    [
        (0.002, 0.002, 1),
        (0.005, 0.004, 1),
        (0.0076, 0.0076, 2),
        (0.009, 0.008, 2),
        (0.0094, 0.0094, 3),
        (None, None, 1),
    ],
)
def test_the_step_takes_its_cpu_time_in_as_many_threads_as_the_script(
    cpu_s: float | None, host_s: float | None, threads: int
) -> None:
    own = OwnLoop(samples_per_s=100.0, step_s_per_sample=0.004, step_cpu_s_per_sample=cpu_s)
    consumer: Any = suite_for(loader(), TuneOrder(name="train", budget_s=60.0, own=own)).consumer
    assert (consumer.demand, consumer.host_cpu_s_per_sample, consumer.host_threads) == (250.0, host_s, threads)
    assert consumer.blocking, "the main process loads nothing during its step"


def test_without_a_demand_nothing_takes_the_batches_and_with_one_a_device_is_emulated() -> None:
    free, paced = (suite_for(loader(), order(demand=demand)).consumer for demand in (None, 321.0))
    assert free.kind == "none"
    assert (paced.kind, paced.demand) == ("emulated", 321.0)  # type: ignore[attr-defined]


def test_a_loader_that_makes_no_batches_of_its_own_has_no_batch_size() -> None:
    assert "batch_size" not in suite_for(loader(batch_size=None), order()).loader


def test_a_copy_of_the_loader_has_its_parts_and_no_workers_of_it() -> None:
    own = loader(2, pin_memory=True, persistent_workers=True)
    own_loader.keep(own, whole_epochs=True)
    own._iterator = "under way"  # type: ignore[assignment]
    copied = own_loader.changed_loader(batch_size=8, persistent_workers=False)
    assert (copied.dataset, copied.sampler, copied.collate_fn) == (own.dataset, own.sampler, own.collate_fn)
    assert (copied._iterator, copied.pin_memory, copied.persistent_workers) == (None, False, False)
    assert (own._iterator, own.pin_memory, own.persistent_workers) == ("under way", True, True)
    with pytest.raises(ValueError, match="batch_size=16 would change the training; it stays 8"):
        own_loader.changed_loader(batch_size=16)
    own._iterator = None


def test_an_epoch_without_an_end_goes_over_the_user_s_own_sampler_again_and_again() -> None:
    own = loader(samples=10, batch_size=4)
    endless = own_loader.changed_loader()
    assert [len(batch) for batch, _ in zip(endless, range(7), strict=False)] == [4, 4, 2, 4, 4, 2, 4]
    assert len(endless) == len(own) == 3
    own_loader.keep(own, whole_epochs=True)
    assert [len(batch) for batch in own_loader.changed_loader()] == [4, 4, 2]


def test_an_empty_sampler_is_no_endless_loop() -> None:
    assert list(own_loader.WithoutEnd([])) == []


@pytest.mark.parametrize("more", [{"timeout": 5}, {"multiprocessing_context": "spawn"}])
def test_a_loader_with_arguments_that_need_workers_is_not_tried_without_any(more: dict[str, object]) -> None:
    assert 0 not in suite_for(loader(1, **more), order(300.0)).sweep["num_workers"]


def test_an_epoch_of_a_sampler_of_batches_is_as_long_as_its_batches_say() -> None:
    batches = BatchSampler(SequentialSampler(range(3_200)), 32, drop_last=False)
    own: DataLoader[int] = DataLoader(list(range(3_200)), batch_sampler=batches)  # type: ignore[arg-type]
    loop = OwnLoop(samples_per_s=100.0, samples_per_batch=32.0)
    found = make_tune_plan(own, TuneOrder(name="train", budget_s=60.0, own=loop))
    assert not found.whole_epochs  # 32 s each


def test_a_loader_that_was_tuned_is_kept_no_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: object) -> None:
        raise OSError("no process")

    monkeypatch.setattr("loaderbench.tuning.tune.call_in_copy", fails)
    assert "no process" in (tune_loader(loader(), order(rate=100.0), tmp_path / "run").why_none or "")
    assert own_loader._own == []


class Seeds:
    def __call__(self, worker_id: int) -> None:
        pass


def seed(worker_id: int, base: int = 0) -> None:
    pass


@pytest.mark.parametrize(
    ("own", "name"), [(None, ""), (seed, "seed"), (partial(seed, base=3), "seed"), (Seeds(), "Seeds")]
)
def test_the_answer_names_the_init_function_of_the_loader(
    own: object, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Returned(answer=Tuned(present={"num_workers": 1}, arguments={"num_workers": 2}))
    monkeypatch.setattr("loaderbench.tuning.tune.call_in_copy", lambda _: found)
    assert tune_loader(loader(1, worker_init_fn=own), order(rate=100.0), tmp_path / "run").worker_init_fn == name
