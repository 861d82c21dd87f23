"""Errors of pydantic are worded as our own, for any allowed value of an option."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import ValidationError

from loaderbench.options import Part
from loaderbench.suite import problems
from loaderbench.suite.problems import Problem, problem_of

EXPECTED = "expected now or never, it's or a, b"


class Inner(Part):
    order: Literal["now or never", "it's", "a, b"] | None = None


class Outer(Part):
    """A small suite."""

    inner: Inner = Inner()
    size: Literal["small", "large"] = "small"


@pytest.mark.parametrize(
    ("given", "path", "what"),
    [
        ({"inner": {"order": "a,b"}}, ("inner", "order"), f"{EXPECTED}, got 'a,b'; did you mean a, b?"),
        ({"inner": {"order": 3}}, ("inner", "order"), f"{EXPECTED}, got 3"),
        ({"size": "lage"}, ("size",), "expected small or large, got 'lage'; did you mean large?"),
    ],
)
def test_the_words_of_an_option_are_listed_as_they_are(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], path: tuple[str, ...], what: str
) -> None:
    monkeypatch.setattr(problems, "Suite", Outer)
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate(given)
    assert [problem_of(detail) for detail in caught.value.errors()] == [Problem(path, what)]
