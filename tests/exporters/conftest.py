"""Runs that are made up, and the real server of Visdom."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "report"))  # runs that are made up
sys.path.insert(0, str(Path(__file__).parents[1] / "script"))  # training scripts


@pytest.fixture(scope="session")
def visdom_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The real server, without the scripts that its page would fetch from a network."""
    pytest.importorskip("visdom")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = "from visdom.server.run_server import main; main()"
    place = tmp_path_factory.mktemp("visdom")
    flags = ["-port", str(port), "-env_path", f"{place}/", "-bind_local"]
    with (place / "log").open("w") as log:
        server = subprocess.Popen([sys.executable, "-c", code, *flags], stdout=log, stderr=log)
    try:
        wait_for(port, server)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    while server.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port)):
                return
        except ConnectionError:
            time.sleep(0.1)
    pytest.fail("the server has ended")
