"""A configuration's record sums up its trials, and says why where it cannot."""

from __future__ import annotations

import math

import pytest
from test_choice import trial

from loaderbench.records import Config, Configuration, GpuUse, Trial
from loaderbench.statistics.configurations import summarize, ties

CONFIG: Config = {"num_workers": 2}


def summed(*readings: dict[str, object]) -> Configuration:
    trials = [trial(f"t{number}", CONFIG, number, 100.0, **more) for number, more in enumerate(readings, 1)]
    return summarize([CONFIG], trials)[0]


def test_memory_is_the_largest_of_all_rounds_and_other_readings_are_means() -> None:
    found = summed(
        {"rss_bytes": 5, "pss_bytes": 40, "shm_peak_bytes": 7, "cpu_percent_of_allotted": 80.0},
        {"rss_bytes": 9, "pss_bytes": 20, "shm_peak_bytes": 3, "cpu_percent_of_allotted": 60.0},
        {},
    )
    assert (found.rss_bytes, found.pss_bytes, found.shm_peak_bytes) == (9, 40, 7)
    assert found.cpu_percent_of_allotted == 70.0
    assert found.metrics == {}


def test_first_batches_have_a_geometric_mean_and_one_of_no_time_does_not_count() -> None:
    found = summed({"time_to_first_batch_s": 0.1}, {"time_to_first_batch_s": 0.4}, {"time_to_first_batch_s": 0.0}, {})
    assert found.time_to_first_batch_s is not None
    assert found.time_to_first_batch_s.est == pytest.approx(0.2)
    assert "time_to_first_batch_s" not in found.not_measured


def test_what_no_trial_could_read_has_a_reason_and_what_one_could_has_none() -> None:
    found = summed({"rss_bytes": 5, "time_to_first_batch_s": 0.1}, {})
    assert found.not_measured == {
        **dict.fromkeys(["pss_bytes", "shm_peak_bytes", "cpu_percent_of_allotted"], "no trial could read it"),
        **dict.fromkeys(["gpu_utilization_percent", "gpu_memory_used_bytes"], "no GPU was used"),
    }
    assert summed({}).not_measured["time_to_first_batch_s"] == "no trial could read it"


def test_a_share_of_waiting_that_is_not_known_has_a_reason() -> None:
    unknown = Trial(role="sweep", id="t", config=CONFIG, round=1, status="completed", samples_per_s=5.0)
    found = summarize([CONFIG], [unknown])[0]
    assert (found.data_wait_share, found.not_measured["data_wait_share"]) == (None, "no trial could read it")


def test_one_round_without_a_sample_is_left_out_of_the_rate_without_a_word() -> None:
    trials = [trial("t1", CONFIG, 1, 100.0), trial("t2", CONFIG, 2, 0.0)]
    found = summarize([CONFIG], trials)[0]
    assert found.samples_per_s is not None
    assert found.samples_per_s.est == pytest.approx(100.0)
    assert "samples_per_s" not in found.not_measured


def device(index: int, percent: float | None, used_bytes: int | None) -> GpuUse:
    return GpuUse(index, f"GPU-{index}", percent, used_bytes, 9_000)


@pytest.mark.parametrize(
    ("gpus", "percent", "used_bytes"),
    [
        ((device(0, 10.0, 10), device(1, 5.0, 8_000)), 5.0, 8_000),
        ((device(0, 10.0, None), device(1, 90.0, None)), 90.0, None),
        ((device(0, 10.0, None), device(1, None, 1)), None, 1),
        ((device(0, None, None), device(1, 0.5, None)), 0.5, None),
    ],
)
def test_the_device_that_did_the_work_is_the_one_whose_memory_or_else_whose_time_was_used_most(
    gpus: tuple[GpuUse, ...], percent: float | None, used_bytes: int | None
) -> None:
    found = summed({"gpus": gpus})
    assert (found.gpu_utilization_percent, found.gpu_memory_used_bytes) == (percent, used_bytes)
    for name, value in (("gpu_utilization_percent", percent), ("gpu_memory_used_bytes", used_bytes)):
        assert found.not_measured.get(name) == (None if value is not None else "no trial could read it")


def test_a_device_that_only_one_round_saw_is_no_missing_accelerator() -> None:
    found = summed({"gpus": (device(0, None, None),)}, {})
    assert found.not_measured["gpu_memory_used_bytes"] == "no trial could read it"


def tied(changed: float, *, rounds: int = 3, wobble: float = 0.1) -> bool:
    top: Config = {"num_workers": 4}
    trials = [
        one
        for number in range(1, rounds + 1)
        for one in (
            trial(f"a{number}", CONFIG, number, 100.0 * changed * math.exp(wobble * (number - (rounds + 1) / 2))),
            trial(f"b{number}", top, number, 100.0),
        )
    ]
    return ties(CONFIG, top, trials)


def test_a_tie_looks_at_most_five_per_cent_slower_and_is_not_known_to_be() -> None:
    assert tied(0.951)
    assert not tied(0.949)
    assert not tied(0.99, wobble=1e-4)
    assert tied(1.0, wobble=1e-4)


def test_a_tie_takes_three_rounds_in_common() -> None:
    assert tied(1.0, rounds=3)
    assert not tied(1.0, rounds=2)


def test_nothing_is_tied_before_the_rounds_suffice() -> None:
    trials = [trial(f"t{number}", CONFIG, number, 100.0) for number in (1, 2)]
    assert not summarize([CONFIG], trials)[0].tied_with_best
    assert not summarize([{"num_workers": 7}], trials)[0].tied_with_best


def test_only_configurations_that_do_the_same_work_are_ranked() -> None:
    """A smaller sample of the files is no faster loader."""
    configs: list[Config] = [{"sample": sample, "num_workers": workers} for sample in (100, 9000) for workers in (0, 2)]
    trials = [
        trial(f"{sample}{workers}{number}", {"sample": sample, "num_workers": workers}, number, rate)
        for number in (1, 2, 3)
        for sample, workers, rate in ((100, 0, 900.0), (100, 2, 950.0), (9000, 0, 100.0), (9000, 2, 200.0))
    ]
    found = summarize(configs, trials, configs[2], alike=("ranks", "sample"))
    assert [one.rank for one in found] == [None, None, 2, 1]
    assert found[0].not_measured["rank"] == "only configs that do the same work as the baseline are ranked"
