"""What several tests of a session share."""

from __future__ import annotations

import pytest
from fakes import Clock

from loaderbench.session import sweep as sweep_step, time_slicing


@pytest.fixture
def unsliced_clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of a session whose trials run one after the other."""
    found = Clock()
    monkeypatch.setattr(sweep_step.time, "monotonic", found)
    monkeypatch.setattr(time_slicing.proc, "available", lambda: False)
    return found
