"""Of tied configurations the cheapest is chosen, and the reason says what it saves."""

from __future__ import annotations

import pytest
from test_choice import choose_best, trial, trials_of

from loaderbench.records import Best, Config, Configuration, GpuUse, Trial
from loaderbench.statistics.choice import describe_baseline
from loaderbench.statistics.configurations import summarize

GB = 1_000_000_000


def tie(*found: tuple[Config, dict[str, object]], baseline: Config | None = None) -> Best:
    """The best of configurations that are equally fast, each with readings of its own."""
    trials = [
        trial(f"r{number}-{index}", config, number, 100.0 + number, **readings)
        for number in (1, 2, 3)
        for index, (config, readings) in enumerate(found)
    ]
    best, _ = choose_best(summarize([config for config, _ in found], trials), baseline or found[0][0], trials)
    assert best is not None
    return best


def gpu(used_bytes: int | None) -> dict[str, object]:
    return {"gpus": (GpuUse(0, "GPU-a", 50.0, used_bytes, 80 * GB),)}


def test_fewer_workers_come_before_memory_and_the_order_of_the_sweep() -> None:
    best = tie(({"num_workers": 4}, {"pss_bytes": 1 * GB}), ({"num_workers": 2}, {"pss_bytes": 9 * GB}))
    assert best.config == {"num_workers": 2}


def test_a_loader_that_names_no_workers_has_none() -> None:
    assert tie(({"num_workers": 1}, {}), ({"decoder": "pillow"}, {})).config == {"decoder": "pillow"}
    assert tie(({"num_workers": 1}, {}), ({"num_workers": None}, {})).config == {"num_workers": None}
    assert tie(({"num_workers": 0}, {}), ({"decoder": "pillow"}, {})).config == {"num_workers": 0}
    assert tie(({"decoder": "pillow"}, {}), ({"num_workers": 0}, {})).config == {"decoder": "pillow"}


def test_less_memory_of_the_accelerator_comes_before_memory_of_the_host() -> None:
    best = tie(
        ({"batch_size": 64}, {"pss_bytes": 1 * GB, **gpu(9 * GB)}),
        ({"batch_size": 32}, {"pss_bytes": 2 * GB, **gpu(5 * GB)}),
    )
    assert best.config == {"batch_size": 32}


def test_where_the_accelerator_s_memory_is_known_the_size_of_a_batch_is_no_cost_of_its_own() -> None:
    assert tie(({"batch_size": 64}, gpu(5 * GB)), ({"batch_size": 32}, gpu(5 * GB))).config == {"batch_size": 64}


def test_where_it_is_not_known_the_smaller_batch_costs_less_whatever_the_host_s_memory() -> None:
    best = tie(({"batch_size": 64}, {"pss_bytes": 1 * GB}), ({"batch_size": 32}, {"pss_bytes": 2 * GB}))
    assert best.config == {"batch_size": 32}
    for size in (None, "auto"):
        assert tie(({"batch_size": 1}, {}), ({"batch_size": size}, {})).config == {"batch_size": size}
    assert tie(({"batch_size": 1}, {}), ({"decoder": "pillow"}, {})).config == {"decoder": "pillow"}


def test_the_fastest_that_is_also_the_cheapest_is_called_both() -> None:
    best = tie(({"num_workers": 2}, {}), ({"num_workers": 4}, {}))
    assert "Fastest and cheapest of 2 configs" in best.why_this_one


@pytest.mark.parametrize(("more", "words"), [(1, "1 worker process"), (2, "2 worker processes")])
def test_what_the_costliest_tie_has_more_workers_is_said(more: int, words: str) -> None:
    best = tie(({"num_workers": 1}, {}), ({"num_workers": 1 + more}, {}))
    assert best.why_this_one.endswith(f" {words} vs the costliest tie")


def test_workers_are_saved_only_where_both_counts_are_known() -> None:
    assert tie(({"num_workers": 0}, {}), ({"num_workers": 1}, {})).why_this_one.endswith(
        " 1 worker process vs the costliest tie"
    )
    for unnamed in ({"num_workers": None}, {"decoder": "pillow"}):
        assert "worker process" not in tie((unnamed, {}), ({"num_workers": 1}, {})).why_this_one
    assert "worker process" not in tie(({"num_workers": 2}, {}), ({"num_workers": 2, "x": 1}, {})).why_this_one


def test_memory_that_is_saved_is_said_from_a_twentieth_of_a_gigabyte_on() -> None:
    def said(readings: dict[str, object], more: dict[str, object]) -> str:
        return tie(({"num_workers": 0}, readings), ({"num_workers": 0, "x": 1}, more)).why_this_one

    assert said({"pss_bytes": 1 * GB}, {"pss_bytes": 3_200_000_000}).endswith(" 2.2 GB of RAM vs the costliest tie")
    assert said(gpu(1 * GB), gpu(2_500_000_000)).endswith(" 1.5 GB of GPU memory vs the costliest tie")
    assert said({"pss_bytes": 1 * GB}, {"pss_bytes": 1_050_000_000}).endswith(" GB of RAM vs the costliest tie")
    assert " GB of" not in said({"pss_bytes": 1 * GB}, {"pss_bytes": 1_049_000_000})
    assert " GB of" not in said({}, {"pss_bytes": 3 * GB})


def test_the_baseline_itself_has_no_gain_and_says_so() -> None:
    best = tie(({"num_workers": 2}, {}), ({"num_workers": 4}, {}), baseline={"num_workers": 2})
    assert (best.gain, "this is the baseline" in best.not_measured["gain"]) == (None, True)
    configs, trials = trials_of({0: [None, None, None], 2: [200, 202, 198]})
    other, _ = choose_best(summarize(configs, trials), {"num_workers": 0}, trials)
    assert other is not None
    assert (other.gain, "never measured in the same round" in other.not_measured["gain"]) == (None, True)
    gained = tie(({"num_workers": 2}, {}), ({"num_workers": 4}, {}), baseline={"num_workers": 4})
    assert gained.gain is not None
    assert gained.not_measured == {}


def test_the_baseline_is_described_as_it_was_measured() -> None:
    configs, trials = trials_of({0: [100, 101, 99], 2: [200, 202, 198]})
    found = describe_baseline(summarize(configs, trials), {"num_workers": 0}, "torch's default")
    assert found.samples_per_s is not None
    assert found.samples_per_s.est == pytest.approx(100, rel=0.01)
    assert found.data_wait_share is not None
    assert found.data_wait_share.est == 0.5
    assert found.not_measured == {}
    assert found.ties == ()
    unknown = describe_baseline(summarize(configs, trials), {"num_workers": 9}, "")
    assert (unknown.samples_per_s, unknown.data_wait_share) == (None, None)
    why = "not among the compared configs"
    assert unknown.not_measured == {"samples_per_s": why, "data_wait_share": why}


def test_the_baseline_names_its_ties_if_it_is_one_of_the_fastest() -> None:
    configs, trials = trials_of({0: [100, 101, 99], 2: [100, 99, 101], 4: [50, 51, 49]})
    found = describe_baseline(summarize(configs, trials), {"num_workers": 0}, "torch's default")
    assert found.ties == ({"num_workers": 2},)


def test_without_any_configuration_there_is_no_winner() -> None:
    assert choose_best([], {}, []) == (None, "no config was measured")


def why(rates: dict[int, list[float | None]]) -> str:
    configs, trials = trials_of(rates)  # type: ignore[arg-type]
    best, _ = choose_best(summarize(configs, trials), {"num_workers": 0}, trials)
    assert best is not None
    return best.why_this_one


def test_the_fastest_of_the_ties_is_named_where_another_is_chosen() -> None:
    said = why({0: [100, 100, 100], 2: [200, 204, 196], 4: [203, 197, 206]})
    assert "Fastest estimate: num_workers=4" in said
    assert "2 configs" in said
    assert "completed in" not in said


def test_others_that_are_no_ties_and_not_surely_slower_are_counted_beside_ties() -> None:
    said = why({0: [60, 160, 90], 1: [30, 30, 30], 2: [200, 204, 196], 4: [203, 197, 206]})
    assert "1 other is over 5% slower" in said
    assert "cannot be compared" not in said


def test_one_and_several_that_share_too_few_rounds_are_counted() -> None:
    assert "1 other not compared" in why({0: [None, None, 195], 2: [200, 202, 198]})
    assert "2 others not compared" in why({0: [None, None, 195], 1: [None, 199, None], 2: [200, 202, 198]})


def test_one_that_looked_faster_in_one_round_is_named_with_its_rounds() -> None:
    said = why({0: [100, 101, 99], 2: [200, 202, 198], 4: [None, None, 303]})
    assert "num_workers=4" in said
    assert said.endswith("was faster, in 1 round only")


def test_a_configuration_without_a_rank_is_never_the_fastest() -> None:
    rows = [
        Configuration(
            config={"x": number}, samples_per_s=None, data_wait_share=None, trials=(), rank=None, tied_with_best=False
        )
        for number in range(2)
    ]
    assert choose_best(rows, {}, list[Trial]())[0] is None
