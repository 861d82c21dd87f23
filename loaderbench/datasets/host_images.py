"""A cache of decoded images shared by all ranks of a machine: one rank decodes for the workers of every rank."""

from __future__ import annotations

import hashlib
import os
import socket
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import torch

from loaderbench.datasets.shared_images import SharedImages

MEETING_S = 600.0  # how long ranks wait to connect to the cache; decoding can take longer


class HostImages(SharedImages):
    """A `SharedImages` for torchrun, filled by the first rank of each machine.

    All ranks must create their caches in the same order. The memory is passed as file descriptors, so it is freed when
    the last process that maps it ends. Raises `ValueError` for ranks with different files, `ConnectionError` if the
    first rank failed, and `TimeoutError` if ranks do not connect.
    """

    made: ClassVar[int] = 0

    def __init__(self, samples: Sequence[tuple[str, int]], loader: Callable[[str], Any], *, room_bytes: int) -> None:
        rank, ranks = int(os.environ.get("LOCAL_RANK", "0")), int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        self._paths = list(dict.fromkeys(path for path, _ in samples))
        address, HostImages.made = _address(HostImages.made), HostImages.made + 1
        if ranks == 1 or sys.platform != "linux":
            super().__init__(samples, loader, room_bytes=room_bytes)
        elif rank > 0:
            self._receive(address)
        else:
            with socket.socket(socket.AF_UNIX) as place:
                place.bind(address)
                place.listen(ranks)
                place.settimeout(MEETING_S)
                header, files = b"", list[int]()
                try:
                    super().__init__(samples, loader, room_bytes=room_bytes)
                    header, files = self._handover()
                finally:  # the other ranks learn of a failure, too
                    for _ in range(ranks - 1):
                        with place.accept()[0] as other:
                            socket.send_fds(other, [header or b"failed"], files)

    def _handover(self) -> tuple[bytes, list[int]]:
        rows = [(begin, turned, *shape) for begin, turned, shape in self._places.values()]
        self._index = torch.tensor(rows, dtype=torch.int64)
        shared = [tensor.untyped_storage()._share_fd_cpu_() for tensor in (self._block, self._index)]
        header = bytes([self._as_image]) + shared[0][1].to_bytes(8, "big") + _digest(self._paths)
        return header, [file for file, _ in shared]

    def _receive(self, address: str) -> None:
        until_s = time.monotonic() + MEETING_S
        with socket.socket(socket.AF_UNIX) as place:
            while place.connect_ex(address):
                if time.monotonic() > until_s:
                    raise TimeoutError("the first rank of this machine made no image cache; make one in every rank")
                time.sleep(0.05)
            header, files, _, _ = socket.recv_fds(place, 64, 2)
        if not files:
            raise ConnectionError("the first rank of this machine could not decode the images; see its error")
        try:
            if header[9:] != _digest(self._paths):
                raise ValueError("the ranks of this machine have different lists of files; give all of them the same")
            rows = _mapped(files[1], 5 * 8 * len(self._paths)).view(torch.int64).view(-1, 5).tolist()
            self._block, self._as_image = _mapped(files[0], int.from_bytes(header[1:9], "big")), bool(header[0])
            self._places = {
                path: (begin, turned, tuple(shape))
                for path, (begin, turned, *shape) in zip(self._paths, rows, strict=True)
            }
        finally:
            for file in files:
                os.close(file)


def _address(number: int) -> str:
    """The abstract socket address, not a file, at which ranks of this machine meet for their n-th cache."""
    job = [os.environ.get(name, "") for name in ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT")]
    return "\0decoded-images-" + _digest([*job, str(number)]).hex()


def _digest(texts: Sequence[str]) -> bytes:
    return hashlib.sha256("\n".join(texts).encode(errors="surrogateescape")).digest()


def _mapped(file: int, size: int) -> torch.Tensor:
    storage: Any = torch.UntypedStorage
    return torch.empty(0, dtype=torch.uint8).set_(storage._new_shared_fd_cpu(file, size))
