"""What trackers draw of a running script: each interval by itself."""

from __future__ import annotations

from dataclasses import replace

import pytest
from saved_recordings import saved_at, trial_of, with_trial

from loaderbench.records import GpuUse, Readings
from loaderbench.records.timeline import TimelinePoint
from loaderbench.script.live import SoFar, numbers_since, so_far
from loaderbench.script.recording import Recording


@pytest.fixture(scope="module")
def saves() -> list[Recording]:
    """Saved within the warm-up of 10 batches, and at 30, 60 and 90 batches; the last 30 are slower."""
    return saved_at([5, 30, 60, 90], slow_from=60)


def test_the_intervals_add_up_to_the_whole_recording(saves: list[Recording]) -> None:
    _, *steady = saves
    samples = wait_s = 0.0
    before = SoFar()
    for recording in steady:
        numbers, now = numbers_since(before, recording), so_far(recording)
        seconds, before = now.seconds - before.seconds, now
        samples += numbers["samples_per_s"] * seconds
        wait_s += numbers["data_wait_share"] * seconds
    whole = trial_of(steady[-1])
    assert samples == pytest.approx(whole.samples)
    assert wait_s == pytest.approx(whole.data_wait_share * whole.steady_s)


def test_a_loop_that_becomes_slower_is_seen_in_the_interval_and_not_only_in_the_mean(saves: list[Recording]) -> None:
    *_, before, last = saves
    interval, whole = numbers_since(so_far(before), last), trial_of(last)
    assert interval["samples_per_s"] < whole.samples_per_s
    assert interval["samples_per_s"] <= 4 / 0.002
    assert interval["time_to_first_batch_s"] == whole.time_to_first_batch_s


def test_the_warm_up_is_shown_while_it_lasts_and_left_out_of_what_follows(saves: list[Recording]) -> None:
    warm, first, *_ = saves
    assert numbers_since(SoFar(), warm)["samples_per_s"] == pytest.approx(trial_of(warm).samples_per_s)
    after = numbers_since(so_far(warm), first)
    assert after["samples_per_s"] == pytest.approx(trial_of(first).samples_per_s)
    assert after["data_wait_share"] == pytest.approx(trial_of(first).data_wait_share)
    counted = [numbers_since(SoFar(), one)["batches"] for one in saves]
    assert counted == [5 - 1, 30 - 1, 60 - 1, 90 - 1]  # the first of an epoch is apart


def test_nothing_is_said_of_a_loader_without_batches_or_without_new_ones(saves: list[Recording]) -> None:
    *_, last = saves
    failed = with_trial(last, status="failed", batches=None, samples=None, steady_s=None, data_wait=None)
    assert numbers_since(SoFar(), failed) == {}
    assert numbers_since(so_far(last), last) == {}


def test_monitors_count_with_what_they_read_since_and_are_left_out_without_it(saves: list[Recording]) -> None:
    *_, before, last = saves
    gpus = (GpuUse(0, "a", utilization_percent=1.0), GpuUse(1, "b", utilization_percent=1.0))
    last = with_trial(last, gpus=gpus, cpu_percent_of_allotted=1.0, rss_bytes=1, epoch_ends=0)
    read = {
        "rss_bytes": (300, 100, 200),
        "cpu_percent_of_allotted": (90, 10, 20),
        "gpu0_utilization_percent": (90, 30, 50),
        "gpu1_utilization_percent": (90, 10, 20),
    }
    trial = trial_of(last).id
    points = [TimelinePoint(trial, at, name, value) for name, values in read.items() for at, value in enumerate(values)]
    last = replace(last, readings=Readings(points))
    earlier = replace(so_far(before), read_s=dict.fromkeys(read, 0))
    found = numbers_since(earlier, last)
    assert (found["rss_bytes"], found["cpu_percent_of_allotted"]) == (200, 15)
    assert found["gpu_utilization_percent"] == 40  # the mean of the busier one
    assert "epoch_ends" not in found  # nothing but zeros
    none_since = numbers_since(replace(earlier, read_s=so_far(last).read_s), last)
    assert not {"rss_bytes", "cpu_percent_of_allotted", "gpu_utilization_percent"} & set(none_since)


def test_a_mean_of_code_around_the_loader_counts_for_the_batches_of_the_interval_alone(saves: list[Recording]) -> None:
    *_, before, last = saves
    plain, found = numbers_since(so_far(before), last), trial_of(last)
    around_s = 1e-4
    wait = replace(found.data_wait, mean_s=found.data_wait.mean_s + around_s)
    around = numbers_since(so_far(before), replace(with_trial(last, data_wait=wait), around_s=around_s))
    seconds = so_far(last).seconds - so_far(before).seconds
    assert around["data_wait_share"] == pytest.approx(plain["data_wait_share"] + 30 * around_s / seconds)
