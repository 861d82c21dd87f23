"""Fixtures of the tests of loops and loaders."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture
def without_collector() -> Iterator[None]:
    """What is gone during the test was freed at once."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()
