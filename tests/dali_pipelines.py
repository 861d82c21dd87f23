"""Pipelines of DALI that tests leave behind."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def no_pipeline_is_left() -> Iterator[None]:
    """Free the pipelines of DALI that hold one another.

    A worker that is forked later could free one instead, and would crash: the pipeline joins threads that the worker
    does not have.
    """
    yield
    gc.collect()
