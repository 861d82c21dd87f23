"""Web servers of folders, on this machine, with latency; and a folder for them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from loaderbench.object_store import ObjectStore


class Files(SimpleHTTPRequestHandler):
    """Serves a folder over connections that stay open. `latency_s` passes before each answer."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or a client's late ACK adds up to 40 ms to the latency
    latency_s: ClassVar[float] = 0.0
    busy: ClassVar[int] = 0
    connections: ClassVar[set[int]] = set()
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        time.sleep(self.latency_s)
        type(self).connections.add(self.client_address[1])
        type(self).asked.append(self.path)
        if type(self).busy > 0:
            type(self).busy -= 1
            self.send_error(503)
            return
        super().do_GET()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def served(folder: Path, kind: type[Files] = Files, **how: object) -> Iterator[tuple[str, type[Files]]]:
    """The address of a server of a folder."""
    handler = type("Handler", (kind,), {"connections": set(), "asked": [], **how})
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder)))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", handler
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def set_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some for boto3, which a server of files does not check. Skips the test where boto3 is not installed."""
    pytest.importorskip("boto3")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(name, "us-east-1")


def six_files(place: Path) -> Path:
    """A folder of six files, one with a name that has to be quoted."""
    root = place / "train"
    for number in range(6):
        file = root / str(number % 2) / (f"{number}.jpg" if number else "a b&c#é.jpg")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(bytes([number]) * (number * 10_000 + 1))
    return root


def samples_of(folder: Path) -> list[tuple[str, int]]:
    return [(str(file), 0) for file in sorted(folder.rglob("*.jpg"))]


def differing(store: ObjectStore, paths: list[str]) -> list[str]:
    """The files whose bytes are others in the store."""
    return [path for number, path in enumerate(paths) if store(number) != Path(path).read_bytes()]
