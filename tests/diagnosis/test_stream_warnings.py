"""A run says what a stream does with `shuffle` and with several workers, once."""

from __future__ import annotations

from dataclasses import replace

import pytest
import run_factory as runs

from loaderbench.diagnosis.warnings import describe_noise, find_setup_notes, find_warnings
from loaderbench.records import Kind, Scalar, Trial, WorkerStates

TRIAL = Trial(
    role="sweep",
    id="r1-c00",
    config={"num_workers": 2},
    round=1,
    status="completed",
    samples_per_s=100.0,
    dataset_traits={"stream": "Tar", "undivided": "Tar"},
    workers=WorkerStates(on_cpu_share=1.0, run_queue_share=0.0, blocked_share=0.0, count=2),
)
DUPLICATES = (
    "Each worker may yield every sample: Tar is an IterableDataset that never calls get_worker_info. "
    "samples/s counts the duplicates"
)
UNSHUFFLED = (
    "shuffle=true has no effect: Tar is an IterableDataset, which a DataLoader cannot shuffle; shuffle inside it"
)


def noted_of_stream(trial: Trial, loader: dict[str, Scalar], kind: Kind = "sweep") -> list[str]:
    """The notes; a warning would lower the confidence of a rate that is as certain."""
    assert not [said for said in said_of_stream(trial, loader, kind) if "shuffle" in said]
    measured = replace(runs.typical(), kind=kind, suite={"loader": loader})
    return list(find_setup_notes([trial, replace(trial, id="r2-c00", round=2)], measured))


def said_of_stream(trial: Trial, loader: dict[str, Scalar], kind: Kind = "sweep") -> list[str]:
    trials = [trial, replace(trial, id="r2-c00", round=2)]
    found = find_warnings(trials, [], describe_noise(trials, []), loader, kind)
    return [said for said in found if "Tar" in said]


@pytest.mark.parametrize("kind", ["sweep", "profile", "ab"])
def test_samples_of_a_stream_that_workers_do_not_divide_are_doubted_once(kind: Kind) -> None:
    assert said_of_stream(TRIAL, {}, kind) == [DUPLICATES]
    assert said_of_stream(replace(TRIAL, dataset_traits={"stream": "Tar"}), {}, kind) == []


@pytest.mark.parametrize("count", [0, 1])
def test_one_worker_gives_each_sample_once(count: int) -> None:
    assert TRIAL.workers is not None
    assert said_of_stream(replace(TRIAL, workers=replace(TRIAL.workers, count=count)), {}) == []
    assert said_of_stream(replace(TRIAL, config={"num_workers": count}, workers=None), {}) == []


def test_workers_that_were_gone_before_they_were_seen_are_counted_by_the_arguments() -> None:
    assert said_of_stream(replace(TRIAL, workers=None), {}) == [DUPLICATES]
    assert said_of_stream(replace(TRIAL, config={}, workers=None), {"num_workers": 2}) == [DUPLICATES]
    assert said_of_stream(replace(TRIAL, config={}, workers=None), {}) == []


@pytest.mark.parametrize(
    ("config", "loader"), [({}, {"shuffle": True}), ({"shuffle": True}, {}), ({"shuffle": True}, {"shuffle": False})]
)
def test_a_stream_that_cannot_be_shuffled_is_named_once(config: dict[str, Scalar], loader: dict[str, Scalar]) -> None:
    trial = replace(TRIAL, config=config, workers=None)
    assert noted_of_stream(trial, loader) == [UNSHUFFLED]
    assert noted_of_stream(trial, loader, "profile") == [], "the script made that loader"
    assert noted_of_stream(replace(trial, dataset_traits={}), loader) == []
    assert noted_of_stream(replace(trial, config={}), {"shuffle": False}) == []
