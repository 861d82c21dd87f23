"""What a call of `loader_guard` may say, checked before anything is measured."""

from __future__ import annotations

import math
from numbers import Integral, Real

from loaderbench.errors import UsageError

RATE_EXPECTED = "expected a number above 0, in samples/s"
SECONDS_EXPECTED = "expected a number above 0, in seconds"
ROUNDS_EXPECTED = "expected a whole number of at least 1"
INCONCLUSIVE_EXPECTED = 'expected "skip" or "fail"'
GATES_EXPECTED = 'expected a gate as text, or a list of them, such as "samples_per_s<800"'


def check_arguments(
    *,
    samples_per_s: object,
    fail_if: object,
    demand: object,
    rounds: object,
    seconds: object,
    inconclusive: object,
) -> None:
    """Raise `UsageError` for the first argument that is not as documented, named as the call has it."""
    checks = (
        ("samples_per_s", samples_per_s, samples_per_s is None or _is_amount(samples_per_s), RATE_EXPECTED),
        ("fail_if", fail_if, _are_texts(fail_if), GATES_EXPECTED),
        ("demand", demand, demand is None or _is_amount(demand), RATE_EXPECTED),
        ("rounds", rounds, _is_whole(rounds) and _is_amount(rounds), ROUNDS_EXPECTED),
        ("seconds", seconds, _is_amount(seconds), SECONDS_EXPECTED),
        ("inconclusive", inconclusive, inconclusive in ("skip", "fail"), INCONCLUSIVE_EXPECTED),
    )
    for name, value, is_right, expected in checks:
        if not is_right:
            raise UsageError(f"loader_guard: {name}={_shown(value)}: {expected}")


def _is_amount(value: object) -> bool:
    """Whether it is a number above 0, and finite."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return 0 < float(value) < math.inf
    except OverflowError:  # a whole number of more digits than a float has
        return False


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral)


def _are_texts(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, list | tuple) and all(isinstance(one, str) for one in value))


def _shown(value: object) -> str:
    """The value as Python writes it, on one line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
