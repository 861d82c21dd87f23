"""The pytest plugin: the fixture `loader_guard`, which checks the throughput of a loader in a user's tests.

pytest imports this file in every environment that has `loaderbench`, so it imports nothing until a test uses the
fixture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from loaderbench.integrations.loader_guard import LoaderGuard

UPDATE = "--loaderbench-update"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes reference runs."""
    help_text = "Measure and write the reference runs of loader_guard, instead of comparing with them."
    parser.getgroup("loaderbench").addoption(UPDATE, action="store_true", help=help_text)


@pytest.fixture
def loader_guard(request: pytest.FixtureRequest) -> LoaderGuard:
    """Check a loader's throughput: `loader_guard(make_loader, samples_per_s=500)`. Measures in several processes."""
    from loaderbench.integrations.loader_guard import LoaderGuard

    return LoaderGuard(request, update=request.config.getoption(UPDATE))
