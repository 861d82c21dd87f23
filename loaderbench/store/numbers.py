"""The numbers of a saved run: JSON's own, and none that no run can hold."""

from __future__ import annotations

from typing import Any


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no number of JSON")


def _believable(number: float, text: str) -> Any:
    """No run holds numbers beyond these, and arithmetic on them would leave what a float can hold."""
    if number and not _SMALLEST < abs(number) < _LARGEST:
        raise ValueError(f"{text[:20]} is no number that a run can hold")
    return number


_SMALLEST, _LARGEST = 1e-30, 1e30
NUMBERS: dict[str, Any] = {
    "parse_constant": _refuse,
    "parse_float": lambda text: _believable(float(text), text),
    "parse_int": lambda text: _believable(int(text), text),
}
