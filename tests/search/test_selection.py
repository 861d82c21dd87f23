"""Remedies are tried in pairs, kept as far as each adds something, and what only looks like a gain is not kept."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

import pytest

from loaderbench.records import Candidate, Config, Failure, PlannedTrial, Trial
from loaderbench.search import StepwiseSelection
from loaderbench.statistics.judging import ENOUGH_PAIRS, judge, wants_more

PRESENT: Config = {"num_workers": 2}
BASELINE: Config = {"num_workers": 0}
DECODER = Candidate("faster_decoder", {"decoder": "torchvision"}, 1.2)
UINT8 = Candidate("uint8_transport", {"normalize": "device"}, 1.3)
COPIES = Candidate("presize_offline", {"presize": 256}, 1.5, effort=3)

Rate = Callable[[Config], float | None]


def run(selection: StepwiseSelection, rate: Rate, *, noise: float = 0.0, late_after: int = 10_000) -> list[Trial]:
    """Let a selection propose until it is content; a rate of `None` is a trial that fails."""
    chance, done = random.Random(1), list[Trial]()
    while planned := selection.next_round(done, late=len(done) >= late_after):
        done += [_trial(one, rate(one.config), noise, chance) for one in planned]
    return done


def _trial(planned: PlannedTrial, rate: float | None, noise: float, chance: random.Random) -> Trial:
    known = {"id": planned.id, "config": planned.config, "round": planned.round}
    if rate is None:
        return Trial(role="remedy", **known, status="failed", failure=Failure("oom", "no memory", "less"))
    return Trial(role="remedy", **known, status="completed", samples_per_s=rate * chance.lognormvariate(0, noise))


def of(*candidates: Candidate) -> Callable[[Config, Sequence[Trial]], Sequence[Candidate]]:
    """A cause that calls for these whatever was changed, but for what is so already."""
    return lambda config: [c for c in candidates if not c.change.items() <= config.items()]


def product(**factors: float) -> Rate:
    """Each change multiplies the rate."""

    def rate(config: Config) -> float:
        found = 100.0 * (2 if config["num_workers"] else 1)
        for axis, factor in factors.items():
            found *= factor if axis in config else 1.0
        return found

    return rate


def accepted(selection: StepwiseSelection) -> list[str]:
    return [tried.id for tried in selection.tried if tried.accepted]


def test_what_gains_is_kept_and_the_next_is_tried_on_top_of_it() -> None:
    selection = StepwiseSelection(PRESENT, BASELINE, of(DECODER, UINT8), seed=0)
    trials = run(selection, product(decoder=1.2, normalize=1.3), noise=0.01)
    assert accepted(selection) == ["uint8_transport", "faster_decoder"]
    assert selection.config == {"num_workers": 2, "normalize": "device", "decoder": "torchvision"}
    whole = judge(selection.config, BASELINE, trials)
    assert whole.ratio is not None
    assert whole.ratio.est == pytest.approx(2 * 1.2 * 1.3, rel=0.05)


def test_each_is_tried_alone_at_first_and_all_of_them_in_the_same_rounds() -> None:
    selection = StepwiseSelection(PRESENT, BASELINE, of(DECODER, UINT8), seed=0)
    trials = run(selection, product(decoder=1.2, normalize=1.3))
    first = [tried for tried in selection.tried if tried.against == PRESENT]
    assert {tried.id for tried in first} == {"faster_decoder", "uint8_transport"}
    rounds = [[trial.config for trial in trials if trial.round == number] for number in range(1, 4)]
    assert all(len(configs) == 3 for configs in rounds)
    assert len({str(configs) for configs in rounds}) > 1, "each round has an order of its own"


def test_what_adds_nothing_on_top_is_not_kept() -> None:
    def rate(config: Config) -> float:
        fast = "decoder" in config or "normalize" in config
        return (200.0 if config["num_workers"] else 100.0) * (1.3 if fast else 1.0)

    selection = StepwiseSelection(PRESENT, BASELINE, of(DECODER, UINT8), seed=0)
    run(selection, rate, noise=0.01)
    assert len(accepted(selection)) == 1


def test_of_two_that_gain_the_less_costly_goes_first() -> None:
    selection = StepwiseSelection(PRESENT, BASELINE, of(COPIES, DECODER), seed=0)
    run(selection, product(presize=1.5, decoder=1.2), noise=0.01)
    assert accepted(selection)[0] == "faster_decoder"


def test_a_remedy_that_fails_or_is_slower_costs_no_more_rounds_than_are_needed_to_see_it() -> None:
    broken = Candidate("memory_cache", {"image_cache": "shared_memory"}, 2.0)
    slower = Candidate("transforms_v2_uint8", {"transform": "imagenet_train_v2"}, 1.4)
    selection = StepwiseSelection(PRESENT, BASELINE, of(broken, slower, DECODER), seed=0)

    def rate(config: Config) -> float | None:
        return None if "image_cache" in config else product(decoder=1.2, transform=0.6)(config)

    trials = run(selection, rate, noise=0.01)
    assert accepted(selection) == ["faster_decoder"]
    assert sum("image_cache" in trial.config for trial in trials) == 1
    assert sum("transform" in trial.config for trial in trials) == 3


def test_the_cause_that_is_left_calls_for_others() -> None:
    def propose(config: Config) -> Sequence[Candidate]:
        return [UINT8] if "decoder" in config else [DECODER]

    selection = StepwiseSelection(PRESENT, BASELINE, propose, seed=0)
    run(selection, product(decoder=1.2, normalize=1.3), noise=0.01)
    assert accepted(selection) == ["faster_decoder", "uint8_transport"]


def test_what_the_cause_no_longer_calls_for_is_not_tried_again() -> None:
    """Of seven, six are tried at first; the two that gain are combined, whatever the cause is then."""
    others = [Candidate(f"c{number}", {f"axis{number}": 1}, 1.1) for number in range(5)]

    def propose(config: Config) -> Sequence[Candidate]:
        return [] if len(config) > 1 else [UINT8, DECODER, *others]

    selection = StepwiseSelection(PRESENT, BASELINE, propose, seed=0)
    run(selection, product(decoder=1.2, normalize=1.3), noise=0.01)
    assert accepted(selection) == ["uint8_transport", "faster_decoder"]
    assert "c4" not in [tried.id for tried in selection.tried]


@pytest.mark.parametrize("late_after", [10_000, 20])
def test_all_that_gain_are_measured_together_and_what_adds_nothing_goes_again(late_after: int) -> None:
    """Smaller copies leave nothing to gain for the cache of decoded images, which is as costly."""
    cache = Candidate("memory_cache", {"image_cache": "shared_memory"}, 1.6, effort=3)

    def rate(config: Config) -> float:
        decoding = 2.0 if "presize" in config else 1.5 if "image_cache" in config else 1.0
        return product(normalize=1.3)(config) * decoding  # type: ignore[operator]

    selection = StepwiseSelection(PRESENT, BASELINE, of(UINT8, COPIES, cache), seed=0)
    trials = run(selection, rate, noise=0.01, late_after=late_after)
    assert accepted(selection) == ["uint8_transport", "presize_offline"]
    assert selection.config == {**PRESENT, **UINT8.change, **COPIES.change}
    added = [tried for tried in selection.tried if tried.accepted]
    assert [tried.against for tried in added] == [
        {**PRESENT, **COPIES.change, **cache.change},
        {**PRESENT, **UINT8.change, **cache.change},
    ]
    whole = judge(selection.config, BASELINE, trials)
    assert whole.ratio is not None
    assert whole.ratio.est == pytest.approx(2 * 1.3 * 2.0, rel=0.05)


def test_of_those_that_are_as_good_as_each_other_the_least_costly_stays() -> None:
    cache = Candidate("memory_cache", {"image_cache": "shared_memory"}, 1.6, effort=2)

    def rate(config: Config) -> float:
        return product(normalize=1.3)(config) * (1.5 if {"presize", "image_cache"} & config.keys() else 1.0)  # type: ignore[operator]

    selection = StepwiseSelection(PRESENT, BASELINE, of(UINT8, COPIES, cache), seed=0)
    run(selection, rate, noise=0.01)
    assert accepted(selection) == ["uint8_transport", "memory_cache"]


def test_a_combination_that_fails_leaves_them_to_be_tried_on_top_of_one_another() -> None:
    def rate(config: Config) -> float | None:
        return None if len(config) > 3 else product(decoder=1.2, normalize=1.3, presize=1.5)(config)

    selection = StepwiseSelection(PRESENT, BASELINE, of(DECODER, UINT8, COPIES), seed=0)
    trials = run(selection, rate, noise=0.01)
    assert accepted(selection) == ["uint8_transport", "faster_decoder"]
    assert sum(len(trial.config) > 3 for trial in trials) <= 2 + 3, "once together, and as what was left"


def test_of_changes_to_one_argument_the_larger_gain_is_combined() -> None:
    lazy = Candidate("scaled_decode", {"decoder": "pillow_lazy"}, 1.1, effort=2)
    selection = StepwiseSelection(PRESENT, BASELINE, of(DECODER, UINT8, lazy), seed=0)
    rates = {"torchvision": 1.2, "pillow_lazy": 1.6, None: 1.0}

    def rate(config: Config) -> float:
        return product(normalize=1.3)(config) * rates[config.get("decoder")]  # type: ignore[operator,index]

    run(selection, rate, noise=0.01)
    assert accepted(selection) == ["uint8_transport", "scaled_decode"]
    assert selection.config["decoder"] == "pillow_lazy"


def test_a_change_that_overrides_another_takes_its_place() -> None:
    lazy = Candidate("scaled_decode", {"decoder": "pillow_lazy"}, 1.1, effort=2)
    selection = StepwiseSelection(PRESENT, BASELINE, of(DECODER, lazy), seed=0)
    rates = {"torchvision": 1.2, "pillow_lazy": 1.6, None: 1.0}
    run(selection, lambda config: 100.0 * rates[config.get("decoder")], noise=0.01)  # type: ignore[index]
    assert accepted(selection) == ["scaled_decode"]
    assert selection.config["decoder"] == "pillow_lazy"


def test_where_no_remedy_is_called_for_nothing_is_measured() -> None:
    selection = StepwiseSelection(PRESENT, BASELINE, lambda *_: (), seed=0)
    assert run(selection, product()) == []
    assert selection.tried == []


def test_out_of_time_it_decides_with_what_there_is() -> None:
    selection = StepwiseSelection(PRESENT, BASELINE, of(DECODER, UINT8), seed=0)
    run(selection, product(decoder=1.2, normalize=1.3), noise=0.01, late_after=15)
    assert accepted(selection) == ["uint8_transport", "faster_decoder"], "the combination is the last comparison, too"
    assert "time" in selection.ended


@pytest.mark.parametrize("trials_together", [0, 4, 8, 12])
def test_cut_short_before_three_pairs_of_the_combination_the_largest_gain_is_kept(trials_together: int) -> None:
    selection = StepwiseSelection(PRESENT, BASELINE, of(DECODER, UINT8), seed=0)
    done: list[Trial] = []
    rate = product(decoder=1.2, normalize=1.3)
    while len(done) < 9 + trials_together:
        done += [_trial(one, rate(one.config), 0.01, random.Random(len(done))) for one in selection.next_round(done)]
    selection.finish(done)
    assert accepted(selection) == ["uint8_transport", "faster_decoder"][: 1 + (trials_together >= 12)]


def test_one_configuration_offered_as_a_remedy_is_hardly_ever_taken_for_a_gain() -> None:
    """A/A over two hundred seeds: at a level of 1%, more than eight would be an error."""
    wrong = 0
    for seed in range(200):
        chance = random.Random(seed)
        done: list[Trial] = []
        selection = StepwiseSelection(PRESENT, PRESENT, of(DECODER), seed=seed)
        while planned := selection.next_round(done):
            done += [_trial(one, 100.0, 0.05, chance) for one in planned]
        answer = judge({**PRESENT, **DECODER.change}, PRESENT, done).answer
        wrong += answer in ("gain", "loss")
    assert wrong <= 8


def test_a_tenth_more_is_found_where_pairs_differ_by_three_percent() -> None:
    found = 0
    for seed in range(100):
        chance, done = random.Random(seed), list[Trial]()
        selection = StepwiseSelection(PRESENT, PRESENT, of(DECODER), seed=seed)
        while planned := selection.next_round(done):
            done += [_trial(one, 110.0 if "decoder" in one.config else 100.0, 0.03, chance) for one in planned]
        found += accepted(selection) == ["faster_decoder"]
    assert found >= 80


@pytest.mark.parametrize(("gain", "spread", "more"), [(1.03, 0.02, True), (1.03, 0.001, False), (1.005, 0.002, False)])
def test_a_gain_that_is_almost_sure_is_measured_once_more(gain: float, spread: float, more: bool) -> None:
    """Five pairs each: only the 95% interval is above 1; both are; both are, but the gain is too small to matter."""
    logs = [-1.2, -0.6, 0.0, 0.6, 1.2]  # their spread is 0.95
    changed: Config = {"num_workers": 3}
    trials = [
        Trial(
            role="remedy", id=f"{number}{config}", config=config, round=number, status="completed", samples_per_s=rate
        )
        for number, log in enumerate(logs)
        for config, rate in ((PRESENT, 100.0), (changed, 100.0 * gain * math.exp(spread * log)))
    ]
    found = judge(changed, PRESENT, trials)
    assert found.ratio is not None
    assert (found.ratio.lo or 0) > 1
    assert found.answer == ("gain" if gain > 1.02 and not more else "no gain")
    assert wants_more(found) == more


def test_a_baseline_that_never_runs_ends_the_comparison_with_it() -> None:
    selection = StepwiseSelection(PRESENT, BASELINE, of(DECODER), seed=0)
    faster = product(decoder=1.3)
    trials = run(selection, lambda config: None if not config["num_workers"] else faster(config), noise=0.01)
    assert accepted(selection) == ["faster_decoder"]
    assert len([trial for trial in trials if trial.config == BASELINE]) == ENOUGH_PAIRS
    assert judge(selection.config, BASELINE, trials).ratio is None
