"""The columns of a table of trials."""

from dataclasses import replace
from pathlib import Path

from loaderbench.records import TimeSlices, Trial, WorkerStates
from loaderbench.store import read_run, trials_frame

EMPTY = Trial(id="a", role="isolation", config={}, round=1, status="failed")
FULL = Trial(
    id="b",
    role="sweep",
    config={},
    round=1,
    status="completed",
    samples_per_s=10.0,
    step_stages={},
    workers=WorkerStates(on_cpu_share=1.0, run_queue_share=0.0, blocked_share=0.0),
    time_slices=TimeSlices(count=1, batches=2, samples=4, seconds=0.5),
)


def test_the_columns_do_not_depend_on_what_was_measured() -> None:
    full, empty = trials_frame([FULL]), trials_frame([EMPTY])
    nested = {"workers", "reads", "wait_parts", "epochs", "step_stages", "time_slices", "stages", "machine"}
    assert list(full) == list(empty)
    assert not nested & set(full)
    assert {"isolation", "log", "samples_per_s", "failure"} <= set(full)
    assert full.loc[0, "samples_per_s"] == 10.0


def test_an_axis_with_the_name_of_a_field_keeps_its_values() -> None:
    trials = [replace(FULL, config={"samples": samples, "size": 8}, samples=100) for samples in (64, 128)]
    found = trials_frame(trials)
    assert found["axis_samples"].tolist() == [64, 128]
    assert found["samples"].tolist() == [100, 100]
    assert found["size"].tolist() == [8, 8]


def test_metrics_of_a_gpu_are_columns_without_their_reasons() -> None:
    record = read_run(Path(__file__).parents[1] / "reports" / "examples" / "h100")
    found = trials_frame(record.trials)
    assert any(name.startswith("gpu0_") for name in found)
    assert not [name for name in found if name.endswith("not_measured")]
