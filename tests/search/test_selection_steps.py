"""How many rounds a step of the selection takes, what it tries next, and why it ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from test_selection import BASELINE, COPIES, DECODER, PRESENT, UINT8, accepted, of, product, run

from loaderbench.records import Candidate, Config, Failure, Trial
from loaderbench.search import StepwiseSelection
from loaderbench.search.selection import NO_MORE, NO_TIME, NOTHING_LEFT

Rate = Callable[[Config, int], float | None]
"""Samples/s of a configuration in a round; `None` where it fails."""


def measured(selection: StepwiseSelection, rate: Rate, *, late_after: int = 10_000) -> list[list[Trial]]:
    """The rounds until the selection is content, or was late after so many."""
    rounds: list[list[Trial]] = []
    while planned := selection.next_round([trial for each in rounds for trial in each], late=len(rounds) >= late_after):
        rounds.append([_trial(one.id, one.config, one.round, rate(one.config, one.round)) for one in planned])
    return rounds


def _trial(name: str, config: Config, number: int, rate: float | None) -> Trial:
    if rate is None:
        return Trial(
            role="remedy", id=name, config=config, round=number, status="failed", failure=Failure("oom", "", "")
        )
    return Trial(role="remedy", id=name, config=config, round=number, status="completed", samples_per_s=rate)


def still(**factors: float) -> Rate:
    """Each change multiplies the rate, and nothing else does."""
    rate = product(**factors)
    return lambda config, _: rate(config)


def restless(up: float, down: float, axis: str = "decoder", **factors: float) -> Rate:
    """The same, but that one change does this in one round and that in the next."""
    rate = product(**factors)
    return lambda config, number: rate(config) * ((up, down)[number % 2] if axis in config else 1.0)


def trying(*candidates: Candidate) -> StepwiseSelection:
    return StepwiseSelection(PRESENT, BASELINE, of(*candidates), seed=0)


def sizes(rounds: Sequence[Sequence[Trial]]) -> list[int]:
    return [len(each) for each in rounds]


def test_a_step_and_the_comparison_with_the_baseline_take_five_rounds_where_nothing_varies() -> None:
    rounds = measured(trying(DECODER), still(decoder=1.2))
    assert sizes(rounds) == [2] * 5 + [2] * 5
    assert [trial.config for trial in rounds[-1] if trial.config == BASELINE] == [BASELINE]


def test_gains_that_a_combination_measures_again_take_three_rounds_and_so_does_the_combination() -> None:
    rounds = measured(trying(DECODER, UINT8), still(decoder=1.2, normalize=1.3))
    assert sizes(rounds) == [3] * 3 + [4] * 3 + [2] * 2, "five pairs with the baseline"
    compared = [trial for each in rounds for trial in each if trial.config == BASELINE]
    assert len(compared) == 5


def test_a_gain_next_to_what_does_not_gain_takes_five_rounds() -> None:
    rounds = measured(trying(DECODER, UINT8), still(decoder=1.2, normalize=1.0))
    assert sizes(rounds)[:5] == [3] * 5


def test_gains_that_change_one_argument_are_compared_over_five_rounds() -> None:
    other = Candidate("scaled_decode", {"decoder": "scaled"}, 1.2)

    def rate(config: Config, _: int) -> float:
        return {"torchvision": 1.2, "scaled": 1.3}.get(str(config.get("decoder")), 1.0) * still(normalize=1.3)(
            config, 1
        )  # type: ignore[operator]

    rounds = measured(trying(DECODER, other, UINT8), rate)
    assert sizes(rounds)[:5] == [4, 4, 4, 3, 3], "only the one without a rival leaves after three"


def test_a_combination_takes_five_rounds_where_a_gain_of_a_part_varies() -> None:
    rounds = measured(trying(DECODER, UINT8), restless(1.25, 1.15, "normalize", decoder=1.3, normalize=1.2))
    together = [each for each in rounds if any("together" in trial.id for trial in each)]
    assert len(together) >= 5


def test_where_the_best_configuration_is_the_baseline_a_combination_is_compared_with_it_too() -> None:
    selection = StepwiseSelection(PRESENT, PRESENT, of(DECODER, UINT8), seed=0)
    rounds = measured(selection, still(decoder=1.2, normalize=1.3))
    assert sizes(rounds) == [3] * 3 + [4] * 3 + [2] * 2
    assert all(sum(trial.config == PRESENT for trial in each) == 1 for each in rounds)


def test_trials_are_numbered_by_round_and_marked_as_tried() -> None:
    planned = trying(DECODER).next_round(())
    assert {one.id for one in planned} == {"v01-present", "v01-faster_decoder"}
    assert all(one.role == "remedy" and one.round == 1 for one in planned)


def test_what_stays_undecided_is_measured_in_twelve_rounds_and_no_more() -> None:
    selection = trying(DECODER)
    rounds = measured(selection, restless(1.5, 0.9))
    assert sizes(rounds) == [2] * 12
    assert (accepted(selection), selection.ended) == ([], NO_MORE)


def test_the_comparison_with_the_baseline_takes_twelve_rounds_where_it_varies() -> None:
    def rate(config: Config, number: int) -> float:
        wobble = (1.5, 0.9)[number % 2] if config == BASELINE else 1.0
        return still(decoder=1.2)(config, number) * wobble  # type: ignore[operator]

    assert sizes(measured(trying(DECODER), rate)) == [2] * 5 + [2] * 12


@pytest.mark.parametrize(("late_after", "compared"), [(6, 5), (10, 5), (11, 6), (13, 8)])
def test_out_of_time_the_comparison_ends_with_five_pairs(late_after: int, compared: int) -> None:
    def rate(config: Config, number: int) -> float:
        wobble = (1.5, 0.9)[number % 2] if config == BASELINE else 1.0
        return still(decoder=1.2)(config, number) * wobble  # type: ignore[operator]

    assert sizes(measured(trying(DECODER), rate, late_after=late_after)) == [2] * 5 + [2] * compared


def test_out_of_time_three_pairs_are_enough_for_a_comparison_that_does_not_vary() -> None:
    assert sizes(measured(trying(DECODER), still(decoder=1.2), late_after=6)) == [2] * 5 + [2] * 3


@pytest.mark.parametrize(("late_after", "rounds"), [(0, 0), (1, 5), (4, 5), (5, 5), (6, 6), (11, 11)])
def test_out_of_time_a_step_that_has_begun_gets_its_five_rounds_and_no_other_begins(
    late_after: int, rounds: int
) -> None:
    selection = trying(DECODER)
    assert len(measured(selection, restless(1.5, 0.9), late_after=late_after)) == rounds
    assert selection.ended == NO_TIME
    assert [tried.id for tried in selection.tried] == ["faster_decoder"] * (rounds > 0)


def test_the_six_that_promise_most_are_tried_first_and_the_others_wait() -> None:
    many = [Candidate(f"c{number}", {f"axis{number}": 1}, 1.0 + number / 10) for number in range(1, 8)]
    unknown = Candidate("unknown", {"other": 1}, None)
    selection = trying(unknown, *many)
    assert [one.id for one in selection.candidates] == ["c7", "c6", "c5", "c4", "c3", "c2"]
    rounds = measured(selection, still())
    assert sizes(rounds) == [7] * 5 + [2] * 5 + [2] * 5
    assert [tried.id for tried in selection.tried][6:] == ["c1", "unknown"]


def test_three_that_gain_are_measured_together_without_each_and_next_to_the_baseline() -> None:
    selection = trying(DECODER, UINT8, COPIES)
    rounds = measured(selection, still(decoder=1.2, normalize=1.3, presize=1.5))
    assert accepted(selection) == ["uint8_transport", "faster_decoder", "presize_offline"]
    assert sizes(rounds) == [4] * 3 + [5] * 3 + [2] * 2
    assert selection.ended == NOTHING_LEFT


def test_where_the_cause_is_not_known_what_was_left_is_tried_and_what_is_in_is_not() -> None:
    def propose(config: Config) -> Sequence[Candidate] | None:
        return [DECODER, UINT8] if config == PRESENT else None

    selection = StepwiseSelection(PRESENT, BASELINE, propose, seed=0)
    measured(selection, still(decoder=1.2, normalize=1.3))
    assert [tried.id for tried in selection.tried] == ["uint8_transport", "faster_decoder"] * 2
    assert len(accepted(selection)) == 2


@pytest.mark.parametrize(("up", "down", "again"), [(1.5, 0.9, True), (1.1, 0.7, False)])
def test_what_is_undecided_but_hopeful_is_tried_again_on_top_of_what_gained(
    up: float, down: float, again: bool
) -> None:
    def rate(config: Config, number: int) -> float:
        if "decoder" not in config:
            return 260.0 if "normalize" in config else 200.0
        return 340.0 if "normalize" in config else 200.0 * (up, down)[number % 2]

    selection = trying(DECODER, UINT8)
    measured(selection, rate)
    assert accepted(selection) == ["uint8_transport"] + ["faster_decoder"] * again


def test_of_two_of_one_effort_the_one_that_gave_more_goes_first() -> None:
    selection = trying(DECODER, UINT8)
    measured(selection, still(decoder=1.5, normalize=1.2))
    assert [(tried.id, tried.against) for tried in selection.tried][-1] == (
        "uint8_transport",
        {**PRESENT, "decoder": "torchvision"},
    )


def test_a_remedy_of_which_a_part_is_overridden_is_part_of_the_result_no_longer() -> None:
    both = Candidate("both", {"decoder": "torchvision", "normalize": "device"}, 1.4)
    lazy = Candidate("scaled_decode", {"decoder": "pillow_lazy"}, 1.1, effort=2)
    selection = trying(both, lazy)
    decoding = {"torchvision": 1.2, "pillow_lazy": 1.5}
    measured(
        selection,
        lambda config, _: decoding.get(str(config.get("decoder")), 1.0) * (130.0 if "normalize" in config else 100.0),
    )
    assert accepted(selection) == ["scaled_decode"]
    assert selection.config == {**PRESENT, "decoder": "pillow_lazy", "normalize": "device"}


def test_a_remedy_that_leaves_another_s_values_as_they_are_overrides_nothing() -> None:
    more = Candidate("more", {"decoder": "torchvision", "normalize": "device"}, 1.1, effort=2)
    selection = StepwiseSelection(
        PRESENT, BASELINE, lambda config: [more] if "decoder" in config else [DECODER], seed=0
    )
    measured(selection, still(decoder=1.2, normalize=1.3))
    assert accepted(selection) == ["faster_decoder", "more"]


def test_of_two_changes_of_one_argument_the_larger_gain_is_taken_whatever_its_effort() -> None:
    """What the smaller one makes of the configuration may not call for the larger one any longer."""
    draft = Candidate("jpeg_draft", {"decoder": "pillow_draft"}, 1.1, effort=2)
    selection = StepwiseSelection(
        PRESENT, BASELINE, lambda config: [] if "decoder" in config else [DECODER, draft], seed=0
    )
    decoding = {"torchvision": 1.25, "pillow_draft": 2.5}
    measured(selection, lambda config, _: 100.0 * decoding.get(str(config.get("decoder")), 1.0))
    assert accepted(selection) == ["jpeg_draft"]


@pytest.mark.parametrize("late_after", [7, 10, 100])
def test_of_changes_that_replace_each_other_one_stays_however_late_it_is(late_after: int) -> None:
    cache = Candidate("memory_cache", {"image_cache": "shared_memory"}, 1.5, effort=2)
    selection = trying(UINT8, cache, COPIES)

    def rate(config: Config, _: int) -> float:
        small = 2.0 if "image_cache" in config or "presize" in config else 1.0
        return 100.0 * small * (1.3 if "normalize" in config else 1.0)

    measured(selection, rate, late_after=late_after)
    assert set(accepted(selection)) == {"uint8_transport", "memory_cache"}


def test_what_failed_is_noted_and_what_was_never_measured_is_not() -> None:
    selection = trying(DECODER)
    measured(selection, lambda config, _: None if "decoder" in config else 100.0)
    assert [tried.id for tried in selection.tried] == ["faster_decoder"]
    untried = trying(DECODER)
    untried.finish(())
    assert (untried.tried, untried.ended, untried.candidates) == ([], NO_TIME, [])


def test_it_can_be_ended_at_any_time_and_keeps_what_is_decided_by_then() -> None:
    selection, done = trying(DECODER, UINT8), list[Trial]()
    for _ in range(5):
        done += [
            _trial(one.id, one.config, one.round, still(decoder=1.2)(one.config, 0))
            for one in selection.next_round(done)
        ]
    selection.finish(done)
    assert (accepted(selection), selection.ended) == (["faster_decoder"], NO_TIME)
    selection.finish(done)
    assert (accepted(selection), selection.ended) == (["faster_decoder"], NO_TIME)
    assert len(selection.tried) == 2


def test_where_the_present_is_the_baseline_and_nothing_gains_nothing_is_compared() -> None:
    selection = StepwiseSelection(PRESENT, PRESENT, of(DECODER), seed=0)
    assert len(run(selection, product())) == 10
    assert selection.config == PRESENT


def test_where_nothing_gains_the_cause_is_asked_for_again_and_what_it_calls_for_now_is_tried_side_by_side() -> None:
    asked: list[Config] = []

    def propose(config: Config) -> Sequence[Candidate]:
        asked.append(config)
        return [COPIES] if len(asked) == 1 else [COPIES, DECODER, UINT8]

    selection = StepwiseSelection(PRESENT, PRESENT, propose, seed=0)
    rounds = measured(selection, still(normalize=1.3))
    assert sizes(rounds)[:10] == [2] * 5 + [3] * 5
    assert [tried.id for tried in selection.tried][:2] == ["presize_offline", "uint8_transport"]
    assert accepted(selection) == ["uint8_transport"]
    assert asked[:2] == [PRESENT, PRESENT]


def test_the_order_within_a_round_is_drawn_and_the_same_for_the_same_seed() -> None:
    def orders(seed: int) -> list[list[str]]:
        selection = StepwiseSelection(PRESENT, BASELINE, of(DECODER, UINT8), seed=seed)
        return [[trial.id[4:] for trial in each] for each in measured(selection, still())]

    assert len({tuple(order) for order in orders(0)}) > 1
    assert orders(0) == orders(0) != orders(1)


def test_out_of_time_the_larger_of_two_gains_stays_though_it_takes_more_effort() -> None:
    selection = trying(Candidate("cheap", {"persistent_workers": True}, effort=0), Candidate("large", {"decoder": "b"}))
    rounds, rate = list[Trial](), still(persistent_workers=1.06, decoder=1.6)
    for _ in range(4):  # three of each alone, one of both
        planned = selection.next_round(rounds)
        rounds += [_trial(one.id, one.config, one.round, rate(one.config, one.round)) for one in planned]
    selection.finish(rounds)
    assert [tried.id for tried in selection.tried if tried.accepted] == ["large"]
