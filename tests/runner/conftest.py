"""One server of trials for the tests of a file."""

from __future__ import annotations

import pytest

from loaderbench.environment import describe_machine
from loaderbench.runner import TrialRunner, TrialServer, probe


@pytest.fixture(scope="module")
def server() -> TrialServer:
    return TrialServer()


@pytest.fixture(scope="module")
def runner(server: TrialServer) -> TrialRunner:
    found = probe(server)
    return TrialRunner(server, describe_machine(server.method, found.gpus, found.not_measured))
