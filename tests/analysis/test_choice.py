"""Ranks, ties, and the cheapest of those that cannot be told apart."""

from collections.abc import Sequence

from loaderbench.analysis.choice import choose_best, describe_baseline
from loaderbench.analysis.configurations import summarise
from loaderbench.records import Config, Failure, GpuUse, Scalar, Trial


def trials_of(rates: dict[int, Sequence[float | None]], **more: object) -> tuple[list[Config], list[Trial]]:
    """One configuration per worker count, a trial per rate; `None` is a failed trial."""
    configs: list[Config] = [{"num_workers": workers} for workers in rates]
    trials = []
    for workers, given in rates.items():
        for number, rate in enumerate(given, 1):
            name, config = f"r{number}-w{workers}", {"num_workers": workers}
            trials.append(trial(name, config, number, rate, **more))
    return configs, trials


def trial(
    name: str, config: dict[str, Scalar] | dict[str, int], number: int, rate: float | None, **more: object
) -> Trial:
    if rate is None:
        return Trial(id=name, config=dict(config), round=number, status="failed", failure=Failure("x", "y", "z"))
    return Trial(
        id=name, config=dict(config), round=number, status="completed", samples_per_s=rate, data_wait_share=0.5, **more
    )  # type: ignore[arg-type]


def test_configurations_are_ranked_by_rate_and_the_failed_have_a_reason() -> None:
    configs, trials = trials_of({0: [100, 101, 99], 1: [None, None, None], 2: [200, 202, 198]})
    slow, failed, fast = summarise(configs, trials)
    assert (fast.rank, slow.rank, failed.rank) == (1, 2, None)
    assert failed.samples_per_s is None
    assert failed.not_measured["samples_per_s"] == "every trial of it failed"
    assert len(failed.trials) == 3


def test_a_configuration_that_was_not_reached_says_so() -> None:
    configs, trials = trials_of({0: [100.0], 1: []})
    assert summarise(configs, trials)[1].not_measured["samples_per_s"] == "not run"


def test_the_cheapest_of_the_ties_is_chosen_and_says_why() -> None:
    configs, trials = trials_of({0: [100, 100, 100], 2: [200, 204, 196], 4: [203, 197, 206]})
    found = summarise(configs, trials)
    best, _ = choose_best(found, {"num_workers": 0}, trials)
    assert best is not None
    assert best.config == {"num_workers": 2}
    assert best.ties == ({"num_workers": 4},)
    assert "cannot be told apart" in best.why_this_one
    assert best.gain is not None
    assert best.gain.lo is not None
    assert best.gain.lo > 1.8


def test_a_configuration_that_looks_much_slower_is_no_tie_however_noisy() -> None:
    configs, trials = trials_of({0: [90, 160, 60], 2: [150, 140, 160]})
    best, _ = choose_best(summarise(configs, trials), {"num_workers": 0}, trials)
    assert best is not None
    assert best.config == {"num_workers": 2}
    assert best.ties == ()


def test_a_drift_that_all_share_hides_no_difference() -> None:
    configs, trials = trials_of({0: [100, 50, 70], 2: [130, 65, 91]})
    best, _ = choose_best(summarise(configs, trials), {"num_workers": 0}, trials)
    assert best is not None
    assert best.config == {"num_workers": 2}


def test_fewer_than_three_rounds_name_no_winner() -> None:
    configs, trials = trials_of({0: [100, 100], 2: [200, 200]})
    best, why = choose_best(summarise(configs, trials), {"num_workers": 0}, trials)
    assert best is None
    assert "n = 2" in why


def test_nothing_measured_names_no_winner() -> None:
    configs, trials = trials_of({0: [None], 2: [None]})
    assert choose_best(summarise(configs, trials), {"num_workers": 0}, trials) == (
        None,
        "no configuration was measured",
    )


def test_less_memory_decides_between_ties_with_as_many_workers() -> None:
    configs: list[Config] = [{"num_workers": 2, "prefetch_factor": 4}, {"num_workers": 2, "prefetch_factor": 2}]
    trials = [
        trial(f"r{number}-{index}", config, number, 100.0 + number, pss_bytes=9_000_000 if index == 0 else 5_000_000)
        for number in (1, 2, 3)
        for index, config in enumerate(configs)
    ]
    best, _ = choose_best(summarise(configs, trials), configs[0], trials)
    assert best is not None
    assert best.config == configs[1]


def test_an_idle_device_does_not_dilute_the_one_that_worked() -> None:
    gpus = (GpuUse(0, "GPU-a", 90.0, 8_000, 9_000), GpuUse(1, "GPU-b", 0.0, 10, 9_000))
    _, trials = trials_of({0: [100.0]}, gpus=gpus)
    (found,) = summarise([{"num_workers": 0}], trials)
    assert (found.gpu_utilization_percent, found.gpu_memory_used_bytes) == (90.0, 8_000)


def test_the_baseline_keeps_its_reason_when_it_failed() -> None:
    configs, trials = trials_of({0: [None], 2: [5.0]})
    found = describe_baseline(summarise(configs, trials), {"num_workers": 0}, "torch's default")
    assert found.samples_per_s is None
    assert found.not_measured["samples_per_s"] == "every trial of it failed"
