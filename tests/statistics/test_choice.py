"""Ranks, ties, and the cheapest of the ties."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from loaderbench.loaders import LOADER_BACKENDS, Batches, LoaderBackend
from loaderbench.loaders.backend import Prefetch
from loaderbench.records import Best, Config, Configuration, Dropped, Failure, GpuUse, Interval, Scalar, Trial
from loaderbench.statistics.choice import choose_best as choose, describe_baseline
from loaderbench.statistics.configurations import summarize


def choose_best(
    configurations: Sequence[Configuration],
    baseline: Config,
    trials: Sequence[Trial],
    planned_rounds: int = 3,
    loader: Config | None = None,
    dropped: Sequence[Dropped] = (),
) -> tuple[Best | None, str]:
    return choose(configurations, baseline, trials, planned_rounds, loader or {}, dropped=dropped)


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
        return Trial(
            role="sweep", id=name, config=dict(config), round=number, status="failed", failure=Failure("x", "y", "z")
        )
    return Trial(
        role="sweep",
        id=name,
        config=dict(config),
        round=number,
        status="completed",
        samples_per_s=rate,
        data_wait_share=0.5,
        **more,
    )  # type: ignore[arg-type]


def test_configurations_are_ranked_by_rate_and_the_failed_have_a_reason() -> None:
    configs, trials = trials_of({0: [100, 101, 99], 1: [None, None, None], 2: [200, 202, 198]})
    slow, failed, fast = summarize(configs, trials)
    assert (fast.rank, slow.rank, failed.rank) == (1, 2, None)
    assert failed.samples_per_s is None
    assert failed.not_measured["samples_per_s"] == "every trial failed"
    assert len(failed.trials) == 3


def test_a_configuration_that_was_not_reached_says_so() -> None:
    configs, trials = trials_of({0: [100.0], 1: []})
    assert summarize(configs, trials)[1].not_measured["samples_per_s"] == "not run"


def test_the_cheapest_of_the_ties_is_chosen_and_says_why() -> None:
    configs, trials = trials_of({0: [100, 100, 100], 2: [200, 204, 196], 4: [203, 197, 206]})
    found = summarize(configs, trials)
    best, _ = choose_best(found, {"num_workers": 0}, trials)
    assert best is not None
    assert best.config == {"num_workers": 2}
    assert best.ties == ({"num_workers": 4},)
    assert "2 configs tied within 5%" in best.why_this_one
    assert "Saves 2 worker processes vs the costliest tie" in best.why_this_one
    assert best.gain is not None
    assert best.gain.lo is not None
    assert best.gain.lo > 1.8


def test_a_configuration_that_looks_much_slower_is_no_tie_however_noisy() -> None:
    configs, trials = trials_of({0: [90, 160, 60], 2: [150, 140, 160]})
    best, _ = choose_best(summarize(configs, trials), {"num_workers": 0}, trials)
    assert best is not None
    assert best.config == {"num_workers": 2}
    assert best.ties == ()


def test_a_drift_that_all_share_hides_no_difference() -> None:
    configs, trials = trials_of({0: [100, 50, 70], 2: [130, 65, 91]})
    best, _ = choose_best(summarize(configs, trials), {"num_workers": 0}, trials)
    assert best is not None
    assert best.config == {"num_workers": 2}


def test_fewer_than_three_rounds_name_no_winner() -> None:
    configs, trials = trials_of({0: [100, 100], 2: [200, 200]})
    found = summarize(configs, trials)
    best, why = choose_best(found, {"num_workers": 0}, trials, planned_rounds=2)
    assert best is None
    assert why == "only 2 rounds: a best config needs 3 or more (--rounds 3)"
    assert [configuration.tied_with_best for configuration in found] == [False, False]


def test_more_rounds_are_not_advised_where_enough_were_planned_but_none_completed() -> None:
    configs, trials = trials_of({0: [100, None, 100], 2: [None, None, 200]})
    assert choose_best(summarize(configs, trials), {"num_workers": 0}, trials, planned_rounds=3) == (
        None,
        "no config completed 3 rounds; the most was 2",
    )


def test_one_failed_round_of_the_fastest_leaves_the_next_as_winner_and_is_told() -> None:
    configs, trials = trials_of({0: [100, 101, 99], 2: [200, 202, 198], 4: [300, None, 303]})
    found = summarize(configs, trials)
    best, _ = choose_best(found, {"num_workers": 0}, trials)
    assert best is not None
    assert best.config == {"num_workers": 2}
    assert [configuration.tied_with_best for configuration in found] == [False, True, False]
    assert best.why_this_one == (
        "Fastest of those with 3 rounds or more; the rest of them are significantly slower. "
        "num_workers=4 was faster, in 2 rounds only"
    )


def why(rates: dict[int, Sequence[float | None]]) -> str:
    configs, trials = trials_of(rates)
    best, _ = choose_best(summarize(configs, trials), {"num_workers": 0}, trials)
    assert best is not None
    return best.why_this_one


def test_slower_beyond_the_noise_is_said_only_where_every_interval_excludes_one() -> None:
    assert why({0: [100, 101, 99], 2: [200, 202, 198]}) == ("Fastest; all others are significantly slower")
    assert why({0: [90, 160, 60], 2: [150, 140, 160]}) == ("Fastest. 1 other is over 5% slower (not significant)")
    assert why({0: [90, 160, 60], 1: [60, 90, 160], 2: [150, 140, 160]}) == (
        "Fastest. 2 others are over 5% slower (not significant)"
    )


def test_one_that_shares_too_few_rounds_is_not_called_slower() -> None:
    assert why({0: [None, None, 195], 2: [200, 202, 198]}) == (
        "Fastest. 1 other not compared: too few rounds in common"
    )


def test_the_only_configuration_is_called_the_only_one() -> None:
    assert why({0: [100, 101, 99]}) == "The only config"
    assert why({0: [100, 101, 99], 2: [None, None, None]}) == "The only config that was measured"


def test_a_rate_of_zero_is_no_rate_and_says_that_no_sample_was_delivered() -> None:
    configs, trials = trials_of({0: [0.0, 0.0, 0.0], 2: [200, 202, 198]})
    none, found = summarize(configs, trials)
    assert none.samples_per_s is None
    assert none.not_measured["samples_per_s"] == "no sample was delivered"
    assert (none.rank, found.rank) == (None, 1)


def test_a_trial_that_cannot_have_a_rate_gives_its_own_reason() -> None:
    without_rate = trial("attach", {"num_workers": 2}, 1, 0.0)
    attached = replace(without_rate, samples_per_s=None, not_measured={"samples_per_s": "x"})
    (found,) = summarize([attached.config], [attached])
    assert found.not_measured["samples_per_s"] == "x"


def test_nothing_measured_names_no_winner() -> None:
    configs, trials = trials_of({0: [None], 2: [None]})
    assert choose_best(summarize(configs, trials), {"num_workers": 0}, trials) == (
        None,
        "no config was measured",
    )


def test_less_memory_decides_between_ties_with_as_many_workers() -> None:
    configs: list[Config] = [{"num_workers": 2, "prefetch_factor": 4}, {"num_workers": 2, "prefetch_factor": 2}]
    trials = [
        trial(f"r{number}-{index}", config, number, 100.0 + number, pss_bytes=9_000_000 if index == 0 else 5_000_000)
        for number in (1, 2, 3)
        for index, config in enumerate(configs)
    ]
    best, _ = choose_best(summarize(configs, trials), configs[0], trials)
    assert best is not None
    assert best.config == configs[1]


def test_memory_counts_to_two_digits_so_that_one_per_cent_more_costs_the_same() -> None:
    assert chosen_by_memory(5_010_000_000, 4_980_000_000) == "first"
    assert chosen_by_memory(5_080_000_000, 4_980_000_000) == "second"


def chosen_by_memory(first: int, second: int) -> Scalar:
    configs: list[Config] = [{"num_workers": 2, "name": "first"}, {"num_workers": 2, "name": "second"}]
    trials = [
        trial(f"r{number}-{index}", config, number, 100.0 + number, pss_bytes=(first, second)[index])
        for number in (1, 2, 3)
        for index, config in enumerate(configs)
    ]
    best, _ = choose_best(summarize(configs, trials), configs[0], trials)
    assert best is not None
    return best.config["name"]


def test_an_idle_device_does_not_dilute_the_one_that_worked() -> None:
    gpus = (GpuUse(0, "GPU-a", 90.0, 8_000, 9_000), GpuUse(1, "GPU-b", 0.0, 10, 9_000))
    _, trials = trials_of({0: [100.0]}, gpus=gpus)
    (found,) = summarize([{"num_workers": 0}], trials)
    assert (found.gpu_utilization_percent, found.gpu_memory_used_bytes) == (90.0, 8_000)


def test_the_baseline_keeps_its_reason_when_it_failed() -> None:
    configs, trials = trials_of({0: [None], 2: [5.0]})
    found = describe_baseline(summarize(configs, trials), {"num_workers": 0}, "torch's default")
    assert found.samples_per_s is None
    assert found.not_measured["samples_per_s"] == "every trial failed"


def test_memory_that_was_not_read_is_not_taken_for_little() -> None:
    known = trials_of({2: [100, 101, 99]}, pss_bytes=900_000_000)[1]
    unknown = [replace(found, id=found.id + "b", config={"batch_size": 8, "num_workers": 2}) for found in known]
    unknown = [replace(found, pss_bytes=None) for found in unknown]
    configs: list[Config] = [{"batch_size": 8, "num_workers": 2}, {"num_workers": 2}]
    best, _ = choose_best(summarize(configs, [*known, *unknown]), {"num_workers": 0}, [*known, *unknown])
    assert best is not None
    assert best.config == {"num_workers": 2}


class Pool(LoaderBackend):
    """Loads in threads."""

    def prefetch(self, arguments: Mapping[str, Any]) -> Prefetch:
        return Prefetch(workers=arguments.get("threads"))

    def build(self, source: Any, arguments: Mapping[str, Any], *, seed: int) -> Batches:
        return Batches(source)


@pytest.mark.parametrize(("fixed", "best_loader"), [({"threads": 64}, "torch"), ({"threads": 0}, "pool")])
def test_workers_of_every_backend_count_those_that_are_fixed_as_well(
    monkeypatch: pytest.MonkeyPatch, fixed: Config, best_loader: str
) -> None:
    monkeypatch.setitem(LOADER_BACKENDS, "pool", Pool())
    configs: list[Config] = [{"loader": name} for name in ("pool", "torch")]
    trials = [trial(f"{n}{config}", dict(config), n, 100.0 + n) for n in (1, 2, 3) for config in configs]  # type: ignore[arg-type]
    best, _ = choose_best(summarize(configs, trials), {}, trials, 3, {**fixed, "num_workers": 1})
    assert best is not None
    assert best.config == {"loader": best_loader}
    assert (f"Saves {64 - 1} worker processes" in best.why_this_one) == (best_loader == "torch")


def test_a_worker_count_that_is_text_in_a_saved_run_counts_as_not_named() -> None:
    configs: list[Config] = [{"num_workers": "two"}, {"num_workers": 2}]
    trials = [trial(f"{n}{config}", dict(config), n, 100.0 + n) for n in (1, 2, 3) for config in configs]
    best, _ = choose_best(summarize(configs, trials), {}, trials)
    assert best is not None
    assert best.config == {"num_workers": "two"}


def test_what_a_budget_left_out_is_not_called_slower() -> None:
    configs, trials = trials_of({0: [100, 101, 99], 1: [50], 2: []})
    unseen = [Dropped(config=config, rounds=0, why="the budget left no time for it") for config in configs[1:]]
    best, _ = choose_best(summarize(configs, trials), configs[0], trials, dropped=unseen)
    assert best is not None
    assert "significantly slower" not in best.why_this_one
    assert "1 other is over 5% slower (not significant)" in best.why_this_one
    ratio = Interval(0.5, 0.4, 0.6)
    slower = [Dropped(config=one, rounds=1, why="slower", than=configs[0], ratio=ratio) for one in configs[1:]]
    best, _ = choose_best(summarize(configs, trials), configs[0], trials, dropped=slower)
    assert best is not None
    assert best.why_this_one.startswith("Fastest; all others are significantly slower")


def test_where_the_sweep_excluded_some_and_did_not_reach_others_it_is_not_called_the_only_one() -> None:
    configs, trials = trials_of({0: [100, 101, 99], 1: [50], 2: []})
    slower = Dropped(config=configs[1], rounds=1, why="slower", than=configs[0], ratio=Interval(0.5, 0.4, 0.6))
    unseen = Dropped(config=configs[2], rounds=0, why="the budget left no time for it")
    best, _ = choose_best(summarize(configs, trials), configs[0], trials, dropped=[slower, unseen])
    assert best is not None
    assert best.why_this_one == (
        "Fastest; all others that were measured are significantly slower. 1 of 3 configs were not measured"
    )
