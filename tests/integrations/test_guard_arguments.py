"""A wrong argument of `loader_guard` is one line that names it as the call has it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from loaderbench.errors import UsageError
from loaderbench.integrations import loader_guard as said
from loaderbench.integrations.loader_guard import check_arguments

pytest_plugins = ["pytester"]

RIGHT: dict[str, Any] = {
    "samples_per_s": 500,
    "fail_if": (),
    "demand": None,
    "rounds": 5,
    "seconds": 1.0,
    "inconclusive": "skip",
}
WRONG: tuple[tuple[str, Any, str], ...] = (
    ("inconclusive", "Fail", said.INCONCLUSIVE_EXPECTED),
    ("inconclusive", True, said.INCONCLUSIVE_EXPECTED),
    ("rounds", 0, said.ROUNDS_EXPECTED),
    ("rounds", 2.5, said.ROUNDS_EXPECTED),
    ("rounds", "5", said.ROUNDS_EXPECTED),
    ("rounds", True, said.ROUNDS_EXPECTED),
    ("seconds", -1, said.SECONDS_EXPECTED),
    ("seconds", float("inf"), said.SECONDS_EXPECTED),
    ("demand", 0, said.RATE_EXPECTED),
    ("samples_per_s", "500", said.RATE_EXPECTED),
    ("samples_per_s", -5, said.RATE_EXPECTED),
    ("samples_per_s", float("nan"), said.RATE_EXPECTED),
    ("samples_per_s", 10**400, said.RATE_EXPECTED),
    ("fail_if", 5, said.GATES_EXPECTED),
    ("fail_if", [5], said.GATES_EXPECTED),
)


@pytest.mark.parametrize(("name", "value", "expected"), WRONG)
def test_a_wrong_argument_is_named_with_what_is_expected(name: str, value: object, expected: str) -> None:
    with pytest.raises(UsageError) as refused:
        check_arguments(**{**RIGHT, name: value})
    start, end = f"loader_guard: {name}=", f": {expected}"
    assert str(refused.value).startswith(start)
    assert str(refused.value).endswith(end)
    written = str(refused.value).removeprefix(start).removesuffix(end)
    assert written == repr(value) or (len(written) == 60 and written.endswith("..."))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("samples_per_s", np.float32(0.5)),
        ("rounds", np.int64(3)),
        ("fail_if", ["samples_per_s<5"]),
        ("inconclusive", "fail"),
    ],
)
def test_what_is_documented_passes(name: str, value: object) -> None:
    check_arguments(**{**RIGHT, name: value})


def test_a_test_fails_with_that_line_and_measures_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        def test_typo(loader_guard):
            loader_guard(lambda: 1 / 0, samples_per_s=1, inconclusive="Fail")
    """)
    done = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:xdist")
    done.assert_outcomes(failed=1)
    errors = [line for line in done.stdout.lines if line.startswith("E ")]
    assert [line.split(maxsplit=1)[1] for line in errors] == [
        'Failed: loader_guard: inconclusive=\'Fail\': expected "skip" or "fail"'
    ]
