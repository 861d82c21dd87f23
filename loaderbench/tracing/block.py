"""The memory that a worker writes and the main process reads: counters, never a queue, so nobody waits.

Everything is a float of eight bytes, written whole; a reader may be one batch behind and never sees half a number.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from loaderbench.histogram import BINS

MAX_STAGES = 64
NAME_BYTES = 128
SLOWEST = 32
PATH_BYTES = 256
SPANS = 2_048  # the last batches that a worker remembers
SPAN_STAGES = 8  # wall seconds of a batch by stage, in the order in which `stages` names them
SPAN_FIELDS = 4 + SPAN_STAGES  # began_s, collate_began_s, ended_s, samples, and the stages
LINES = 64  # of code, that a worker counts looks at
LINE_BYTES = 384
SLOW_FIELDS = 4  # wall_s, index (-1: none), stage, ended_s

ENABLED, BATCHES, SAMPLES, TRACED, STAGES, SINCE_S = range(6)
READS_AT = 6  # samples that read, their bytes, blocked seconds, and the sums of bytes^2 and bytes * seconds
READS = 5
LINES_KNOWN = READS_AT + READS
_HEADER = 16

CALLS_AT = _HEADER
WALL_AT = CALLS_AT + MAX_STAGES
CPU_AT = WALL_AT + MAX_STAGES
BINS_AT = CPU_AT + MAX_STAGES
BIN_SUMS_AT = BINS_AT + BINS
LINES_AT = BIN_SUMS_AT + BINS
SLOW_AT = LINES_AT + LINES
_SPANS_AT = SLOW_AT + SLOWEST * SLOW_FIELDS
_FLOATS = _SPANS_AT + SPANS * SPAN_FIELDS
_NAMES: Final = _FLOATS * 8
_PATHS: Final = _NAMES + MAX_STAGES * NAME_BYTES
_REASON: Final = _PATHS + SLOWEST * PATH_BYTES
_LINE_TEXTS: Final = _REASON + PATH_BYTES
BLOCK_BYTES: Final = _LINE_TEXTS + LINES * LINE_BYTES


class CodeLine(NamedTuple):
    """A line of a file, the function it is in, and the function of a library that it called; empty without one."""

    file: str
    line: int
    function: str
    below: str


class Block:
    """One worker's part of the shared memory; `memory` is anything that has a buffer of bytes."""

    def __init__(self, memory: Any, worker: int = 0) -> None:
        whole = memoryview(memory).cast("B")
        self._bytes = whole[worker * BLOCK_BYTES : (worker + 1) * BLOCK_BYTES]
        floats = self._bytes[: _FLOATS * 8].cast("d")
        self.header = floats[:_HEADER]
        self.calls, self.wall_s, self.cpu_s = (floats[at : at + MAX_STAGES] for at in (CALLS_AT, WALL_AT, CPU_AT))
        self.bins, self.bin_sums_s = floats[BINS_AT:BIN_SUMS_AT], floats[BIN_SUMS_AT:LINES_AT]
        self.line_looks = floats[LINES_AT:SLOW_AT]
        self.slow, self.spans = floats[SLOW_AT:_SPANS_AT], floats[_SPANS_AT:]

    def counters(self) -> list[float]:
        """A copy of everything that is added up; the difference of two copies is what happened in between."""
        return [*self.header, *self.calls, *self.wall_s, *self.cpu_s, *self.bins, *self.bin_sums_s, *self.line_looks]

    def names(self) -> list[tuple[str, str]]:
        """Stage and part of every place that has one."""
        found = (self._text(_NAMES + place * NAME_BYTES, NAME_BYTES) for place in range(int(self.header[STAGES])))
        return [(stage, part) for stage, _, part in (text.partition("/") for text in found)]

    def span_stages(self) -> list[str]:
        """The stages whose seconds a batch's span holds; one that is met later counts as the sample's own time."""
        return list(dict.fromkeys(stage for stage, _ in self.names()))[:SPAN_STAGES]

    def add_name(self, stage: str, part: str) -> None:
        """Name the next place."""
        place = int(self.header[STAGES])
        self._write(_NAMES + place * NAME_BYTES, NAME_BYTES, f"{stage}/{part}")
        self.header[STAGES] = place + 1

    def lines(self) -> list[CodeLine]:
        """The lines of code that were seen, in the order of their counts."""
        texts = (
            self._text(_LINE_TEXTS + place * LINE_BYTES, LINE_BYTES) for place in range(int(self.header[LINES_KNOWN]))
        )
        parts = (text.split("\t") for text in texts)
        return [CodeLine(file, int(line), function, below) for line, function, below, file in parts]

    def add_line(self, line: CodeLine) -> int:
        """Keep another line, of a long path its end, and return its place."""
        place, room = int(self.header[LINES_KNOWN]), LINE_BYTES // 4
        function, below = line.function[:room], line.below[:room]
        head = f"{line.line}\t{function}\t{below}\t"
        file = line.file[-(LINE_BYTES - len(head.encode())) :] if line.file.isascii() else line.file[-room:]
        self._write(_LINE_TEXTS + place * LINE_BYTES, LINE_BYTES, head + file)
        self.header[LINES_KNOWN] = place + 1
        return place

    def path(self, place: int) -> str:
        """The path of a slow sample; empty where none is known."""
        return self._text(_PATHS + place * PATH_BYTES, PATH_BYTES)

    def set_path(self, place: int, path: str) -> None:
        """Keep the path of a slow sample, or its end when it is too long."""
        data = path.encode("utf-8", "surrogateescape")
        if len(data) > PATH_BYTES:
            path = "..." + data[3 - PATH_BYTES :].decode("utf-8", "ignore")
        self._write(_PATHS + place * PATH_BYTES, PATH_BYTES, path)

    @property
    def reason(self) -> str:
        """Why this worker could not be traced; empty where it was."""
        return self._text(_REASON, PATH_BYTES)

    def fail(self, reason: str) -> None:
        """Say why this worker could not be traced."""
        self._write(_REASON, PATH_BYTES, reason)

    def _text(self, at: int, size: int) -> str:
        return bytes(self._bytes[at : at + size]).split(b"\0", 1)[0].decode("utf-8", "replace")

    def _write(self, at: int, size: int, text: str) -> None:
        data = text.encode("utf-8", "surrogateescape")[:size]
        self._bytes[at : at + size] = data + bytes(size - len(data))
