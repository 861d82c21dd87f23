"""Images that cannot be decoded: all of a folder, before the trials, or a first count of them after one has failed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from multiprocessing.connection import Connection
from typing import Any

from loaderbench.datasets.cache_folder import usable_cores
from loaderbench.datasets.decoders import DECODERS, decode_pillow
from loaderbench.errors import MissingError
from loaderbench.runner.server import TrialServer

LOOK_S = 2.0  # after a failure
TIMEOUT_S = 3600.0
_AT_ONCE = 64

Samples = tuple[tuple[str, int], ...]


def find_bad_images(server: TrialServer, samples: Samples, decoders: Sequence[str]) -> dict[str, str]:
    """Decode each file once by each decoder, in a process of its own: path and reason of those that cannot be.

    Raises `MissingError` where that process ends, as one does in which a decoder crashes.
    """
    found = server.ask(_answer, [path for path, _ in samples], list(decoders), timeout_s=TIMEOUT_S)
    if not isinstance(found, dict):
        raise MissingError("dataset.skip_bad: the process that decoded the files ended, as if a decoder had crashed")
    return found


def _answer(pipe: Connection, paths: list[str], decoders: list[str]) -> None:
    with ThreadPoolExecutor(usable_cores()) as pool:
        whys = pool.map(lambda path: _why_bad(path, [DECODERS[name] for name in decoders]), paths)
        pipe.send({path: why for path, why in zip(paths, whys, strict=True) if why is not None})


@lru_cache(maxsize=1)
def count_bad_images(samples: Samples, look_s: float = LOOK_S) -> tuple[int, int]:
    """How many cannot be decoded by Pillow, and how many were looked at in the time there was; each folder once."""
    until_s, bad, seen = time.monotonic() + look_s, 0, 0
    with ThreadPoolExecutor(usable_cores()) as pool:
        for paths in _portions([path for path, _ in samples]):
            bad += sum(why is not None for why in pool.map(lambda path: _why_bad(path, [decode_pillow]), paths))
            seen += len(paths)
            if time.monotonic() > until_s:
                break
    return bad, seen


def _portions(paths: Sequence[str]) -> Iterator[Sequence[str]]:
    return (paths[begin : begin + _AT_ONCE] for begin in range(0, len(paths), _AT_ONCE))


def _why_bad(path: str, decoders: Sequence[Callable[[str], Any]]) -> str | None:
    for decode in decoders:
        try:
            decode(path)
        except Exception as error:  # each library has its own, and some raise what is no OSError
            return f"{type(error).__name__}: {error}"
    return None
