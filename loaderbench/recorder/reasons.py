"""Why something is missing: every `None` of a trial has a reason."""

from __future__ import annotations

from collections.abc import Mapping

from loaderbench.records import Reasons, Trial

_NO_REASON_NEEDED = ("failure",)
_ALWAYS = {"sampled": "nothing was left out", "turns": "it was measured in one piece"}


def why_missing(trial: Trial, known: Mapping[str, str], default: str) -> Reasons:
    """A reason for each field that is `None`: the one that is known, or the default."""
    missing = [name for name, value in vars(trial).items() if value is None and name not in _NO_REASON_NEEDED]
    return {name: known.get(name) or _ALWAYS.get(name) or default for name in missing}
