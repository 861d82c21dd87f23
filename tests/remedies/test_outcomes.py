"""What a measured change is called: a gain, none, a loss, undecided, or cheaper and as fast."""

import pytest
from sweeps import answers, measured

from loaderbench.records import Config, Recommendation
from loaderbench.remedies.base import MeasuredChange, already_ok

AXES = {"num_workers": [0, 2]}
NONE: Config = {"num_workers": 0}
TWO: Config = {"num_workers": 2}


def changed(*rates: float, before: tuple[float, ...] = (100.0, 100.0, 100.0)) -> Recommendation:
    return MeasuredChange("x", "X", TWO).recommend(measured([(NONE, before), (TWO, rates)], AXES))


def test_a_loss_beyond_the_noise_is_called_slower() -> None:
    found = changed(60, 61, 59)
    assert (found.status, found.basis) == ("already_ok", "measured")
    assert found.reason == "Slower: 0.60\u00d7 (0.58\u20130.63\u00d7)"


def test_an_interval_that_leaves_no_room_is_called_no_gain() -> None:
    found = changed(102, 104, 100)
    assert (found.status, found.basis) == ("already_ok", "measured")
    assert found.reason == "No gain above 10%: 1.02\u00d7 (0.97\u20131.07\u00d7)"


def test_an_interval_that_holds_a_gain_and_a_loss_is_called_undecided_and_keeps_its_gain() -> None:
    found = changed(100, 300, 1200)
    assert (found.status, found.basis, found.snippet) == ("not_checked", "measured", None)
    assert found.gain is not None
    assert found.reason == (
        "Undecided: 3.3\u00d7 (0.1\u201372.8\u00d7) includes both a gain and a loss. "
        "Try --rounds 6 or a quieter machine"
    )


def test_one_round_in_common_is_undecided() -> None:
    found = changed(200, before=(100.0, 100.0, 100.0))
    assert found.status == "not_checked"
    assert "2.0\u00d7 from a single round" in (found.reason or "")


def test_a_gain_beyond_the_noise_is_open() -> None:
    assert changed(200, 202, 198).status == "open"


def test_what_was_not_measured_is_not_called_measured() -> None:
    assert already_ok("x", "X", "it is so").basis is None


EIGHT: Config = {"num_workers": 8}
FEWER_AXES = {"num_workers": [2, 8]}


def test_fewer_workers_that_are_as_fast_are_recommended_for_what_they_save() -> None:
    given = measured([(EIGHT, (100, 101, 99)), (TWO, (100, 99, 101))], FEWER_AXES, sizes=(2_200 << 20, 1_000 << 20))
    found = answers(given)["fewer_workers"]
    assert (found.status, found.change) == ("open", TWO)
    assert found.gain is not None
    assert found.gain.est == pytest.approx(1.0, abs=0.01)
    assert found.costs == ("6 fewer worker processes", "1,200 MiB less RAM")
    assert found.caveat == "No significant difference; recommended because it costs less"
    assert found.snippet is not None


def test_fewer_workers_that_are_faster_carry_no_caveat_of_being_as_fast() -> None:
    found = answers(measured([(EIGHT, (100, 101, 99)), (TWO, (200, 202, 198))], FEWER_AXES))["fewer_workers"]
    assert (found.status, found.caveat) == ("open", None)


def test_more_workers_that_are_only_as_fast_are_not_recommended() -> None:
    given = measured([(TWO, (100, 101, 99)), (EIGHT, (100, 99, 101))], FEWER_AXES)
    assert all(found.status != "open" for found in answers(given).values())
