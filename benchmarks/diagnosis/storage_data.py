"""Readers over slow storage: played devices, a server on a socket, and the disk past its cache."""

from __future__ import annotations

import mmap
import multiprocessing
import os
import socket
import socketserver
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch.utils.data import Dataset

from benchmarks.diagnosis.opaque_data import ENDLESS
from benchmarks.diagnosis.work import sample, until


class SlowLoader:
    """A folder's loader function whose device sleeps before it hands out a file."""

    def __init__(self, latency_s: float, bytes_per_s: float) -> None:
        self.latency_s, self.bytes_per_s = latency_s, bytes_per_s

    def delay_s(self, path: str) -> float:
        return self.latency_s + (Path(path).stat().st_size / self.bytes_per_s if self.bytes_per_s else 0.0)

    def __call__(self, path: str) -> Image.Image:
        time.sleep(self.delay_s(path))
        with Image.open(path) as image:
            return image.convert("RGB")


class SlowFile(SlowLoader):
    """The same inside of the file object, where a file system in user space would wait."""

    def __call__(self, path: str) -> Image.Image:
        with open(path, "rb") as file:  # noqa: PTH123 - as users write it
            time.sleep(self.delay_s(path))
            with Image.open(file) as image:
                return image.convert("RGB")


class Files(Dataset[Any]):
    def __init__(self, paths: list[str]) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return ENDLESS

    def path(self, index: int) -> str:
        return self.paths[index % len(self.paths)]


class Sleeping(Files):
    """Each file takes its latency and the time of its bytes."""

    def __init__(self, paths: list[str], latency_s: float = 0.0, bytes_per_s: float = 0.0) -> None:
        super().__init__(paths)
        self.latency_s, self.bytes_per_s = latency_s, bytes_per_s

    def __getitem__(self, index: int) -> Any:
        content = Path(self.path(index)).read_bytes()
        time.sleep(self.latency_s + (len(content) / self.bytes_per_s if self.bytes_per_s else 0.0))
        return sample(index, content[0])


class SharedDevice(Files):
    """One device for all workers: each read is put into its queue, and none waits holding a lock."""

    def __init__(self, paths: list[str], bytes_per_s: float) -> None:
        super().__init__(paths)
        self.bytes_per_s, self.free_at_s = bytes_per_s, multiprocessing.Value("d", 0.0)

    def __getitem__(self, index: int) -> Any:
        content = Path(self.path(index)).read_bytes()
        with self.free_at_s.get_lock():
            done_s = max(time.monotonic(), self.free_at_s.value) + len(content) / self.bytes_per_s
            self.free_at_s.value = done_s
        until(done_s)
        return sample(index, content[0])


class Uncached(Files):
    """Reads raw files past the page cache into one buffer, and looks at a thousandth of them."""

    buffer: Any = None

    def __init__(self, paths: list[str], cached: bool = False, size: int = 8 << 20) -> None:
        super().__init__(paths)
        self.flags, self.size = os.O_RDONLY | (0 if cached else os.O_DIRECT), size

    def __getitem__(self, index: int) -> Any:
        if self.buffer is None:
            self.buffer = mmap.mmap(-1, self.size)  # O_DIRECT asks for whole pages
        file = os.open(self.path(index), self.flags)
        os.preadv(file, [self.buffer], 0)
        os.close(file)
        return sample(index, int(torch.frombuffer(self.buffer, dtype=torch.uint8)[::1000].sum()))


class Fetched(Dataset[Any]):
    """A sample is 100 KB from a server, one connection for each; with a time limit, Python polls it."""

    def __init__(self, port: int, timeout_s: float | None = None) -> None:
        self.port, self.timeout_s = port, timeout_s

    def __len__(self) -> int:
        return ENDLESS

    def __getitem__(self, index: int) -> Any:
        with socket.create_connection(("127.0.0.1", self.port), timeout=self.timeout_s) as connection:
            connection.sendall(b"GET\n")
            with connection.makefile("rb") as answer:
                return sample(index, answer.read()[0])


class server(AbstractContextManager[None]):  # noqa: N801 - reads as a function where it is used
    """A process that sends 100 KB to whoever connects, `latency_s` after being asked."""

    def __init__(self, latency_s: float) -> None:
        context = multiprocessing.get_context("fork")
        told, tell = context.Pipe(duplex=False)
        self._process = context.Process(target=_serve, args=(latency_s, tell), daemon=True)
        self._process.start()
        self.port: int = told.recv()

    def __call__(self) -> server:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()


def _serve(latency_s: float, tell: Any) -> None:
    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.rfile.readline()
            time.sleep(latency_s)
            self.wfile.write(bytes(100_000))

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        request_queue_size = 128  # of the default 5, the kernel drops others, which ask again after a second

    with Server(("127.0.0.1", 0), Handler) as listening:
        tell.send(listening.server_address[1])
        listening.serve_forever()
