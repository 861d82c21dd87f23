"""Every gain says what it is measured against, by the name that a reader knows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loaderbench.records import Config, Gain, Recommendation, gain_reference

BASELINE: Config = {"batch_size": 32, "num_workers": 0}
BEST: Config = {"batch_size": 32, "num_workers": 2}
FIX = Recommendation(
    id="x", title="X", change={}, basis="measured", gain=Gain("samples_per_s", 1.5, 1.4, 1.6), status="open"
)


@pytest.mark.parametrize(
    ("against", "best", "said"),
    [
        (None, BEST, "vs baseline"),
        (BASELINE, BEST, "vs baseline"),
        (BASELINE, BASELINE, "vs baseline"),
        (BEST, BEST, "vs best config"),
        (BEST, None, "vs num_workers=2"),
        ({**BEST, "normalize": "device"}, BEST, "vs best config + normalize=device"),
        ({**BASELINE, "normalize": "device"}, BASELINE, "vs normalize=device"),
        ({**BASELINE, "num_workers": 4}, BEST, "vs num_workers=4"),
        ({**BASELINE, "num_workers": 4, "presize": 256}, None, "vs num_workers=4 presize=256"),
    ],
)
def test_a_gain_names_what_it_is_over(against: Config | None, best: Config | None, said: str) -> None:
    assert gain_reference(replace(FIX, against=against), BASELINE, best) == said


def test_a_loader_of_the_user_s_own_is_its_own_baseline() -> None:
    assert gain_reference(replace(FIX, against={}), {}, None) == "vs baseline"
    assert gain_reference(replace(FIX, against={}), BASELINE, None) == "vs unmodified config"


def test_a_fix_without_a_gain_has_no_reference() -> None:
    assert gain_reference(replace(FIX, gain=None, basis="heuristic"), BASELINE, BEST) is None
