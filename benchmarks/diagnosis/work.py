"""Work of known kinds: pure Python, NumPy, hashing, zipping. Each takes about the milliseconds asked for."""

from __future__ import annotations

import hashlib
import time
import zlib
from typing import Any

import numpy as np
import torch

_TEXT = np.random.default_rng(0).integers(0, 64, 1 << 20, dtype=np.uint8).tobytes()
_GRID = np.random.default_rng(0).random((64, 64))  # so small that no call asks the kernel for memory
_SQUARE = np.random.default_rng(0).random((256, 256))


def python(ms: float) -> int:
    """Holds the interpreter lock all the while."""
    total = 0
    for value in range(int(ms * 20_000)):
        total = (total + value * value) & 0xFFFF
    return total


def hashing(ms: float) -> int:
    return hashlib.pbkdf2_hmac("sha256", b"sample", b"salt", int(ms * 4_000))[0]


def zipping(ms: float) -> int:
    return len(zlib.compress(_TEXT[: int(ms * 25_000)], 6))


def fourier(ms: float) -> float:
    """Transforms by NumPy, which has no threads for them."""
    return sum(float(np.fft.fft2(_GRID)[0, 0].real) for _ in range(round(ms * 20)))


def matrices(ms: float) -> float:
    """Multiplies matrices by the BLAS library of NumPy, in as many threads as it starts."""
    return sum(float((_SQUARE @ _SQUARE)[0, 0]) for _ in range(round(ms)))


def scattered(ms: float, table: np.ndarray[Any, Any], draws: np.random.Generator) -> float:
    """Looks up a table in random order: fast while the table stays in the cache, and no longer."""
    return sum(float(table[draws.integers(0, len(table), 8_000)].sum()) for _ in range(round(ms * 10)))


def until(moment_s: float) -> None:
    """Sleep until `time.monotonic()` says so."""
    if (left_s := moment_s - time.monotonic()) > 0:
        time.sleep(left_s)


def sample(index: int, value: float = 0.0) -> tuple[torch.Tensor, int]:
    """A small sample that costs almost nothing to send."""
    return torch.full((64,), float(value)), index
