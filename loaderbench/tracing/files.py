"""Files whose reads from the system are timed."""

from __future__ import annotations

import io
import sys
from typing import Any

from loaderbench.tracing.clock import LIGHT_S, now_s, thread
from loaderbench.tracing.tracer import Tracer

_readinto = io.FileIO.readinto
_MOST_BUFFERED = 8 * 1024 * 1024


class TimedFile(io.FileIO):
    """A file whose reads are charged to the stage `read` while its thread is traced."""

    def __init__(self, path: str | bytes, tracer: Tracer) -> None:
        super().__init__(path, "rb")
        self._tracer, self._clock, self._read_stage = tracer, tracer.clock, tracer.read

    def readinto(self, buffer: Any) -> int | None:
        """Read into the buffer."""
        began_s = now_s()
        result = _readinto(self, buffer)
        self.note(now_s() - began_s)
        self._tracer.read_bytes += result or 0
        return result

    def readall(self) -> bytes:
        """Read to the end."""
        began_s = now_s()
        result = super().readall()
        self.note(now_s() - began_s)
        self._tracer.read_bytes += len(result)
        return result

    def read(self, size: int = -1) -> bytes | None:  # type: ignore[override]
        """Read so many bytes, or to the end."""
        began_s = now_s()
        result = super().read(size)
        self.note(now_s() - began_s)
        self._tracer.read_bytes += len(result or b"")
        return result

    def note(self, took_s: float) -> None:
        """Charge what a call took."""
        clock = self._clock
        if took_s < LIGHT_S:
            clock.read_s += took_s
            clock.reads += 1
        elif clock.ident == thread():
            clock.light(self._read_stage, took_s)


def buffer_bytes(raw: io.FileIO) -> int:
    """What `open` would buffer of this file."""
    block_bytes = int(getattr(raw, "_blksize", 0))
    if sys.version_info >= (3, 14):
        return max(min(block_bytes, _MOST_BUFFERED), io.DEFAULT_BUFFER_SIZE)
    return block_bytes if block_bytes > 1 else io.DEFAULT_BUFFER_SIZE
