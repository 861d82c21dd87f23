"""What an installation asks of the packages that are there."""

from __future__ import annotations

from importlib.metadata import requires

from packaging.requirements import Requirement


def test_no_requirement_has_an_upper_limit() -> None:
    """An installation next to newer packages would replace them by older ones."""
    needed = [Requirement(line) for line in requires("loaderbench") or ()]
    assert len(needed) > 10
    limited = [str(one) for one in needed if any(part.operator != ">=" for part in one.specifier)]
    assert not limited
