"""Layout of the shared memory that a worker writes and the main process reads.

It holds counters rather than a queue, so neither side blocks. Every number is an 8-byte float, written in one piece: a
reader can be one batch behind, but never sees half a number.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from loaderbench.code_places import CodeFrame
from loaderbench.histogram import BINS, bin_of

MAX_STAGES = 64
NAME_BYTES = 128
SLOWEST = 32
PATH_BYTES = 256
SPANS = 2_048  # most recent batches kept for each worker
SPAN_STAGES = 8  # wall seconds of a batch by stage, in the order of `span_stages`
SPAN_FIELDS = 4 + SPAN_STAGES  # began_s, collate_began_s, ended_s, samples, then the stages
FRAMES = 512  # capacity of a worker's call tree
FRAME_BYTES, FILE_BYTES = 256, 160
SLOW_FIELDS = 4  # wall_s, index (-1: none), stage, ended_s

ENABLED, BATCHES, SAMPLES, TRACED, STAGES, SINCE_S = range(6)
READS_AT = 6  # samples that read files, bytes, blocked seconds; sums of bytes^2, bytes * seconds, and seconds^2
READS = 6
FRAMES_KNOWN = READS_AT + READS
LOOKS = FRAMES_KNOWN + 1
SENDER = LOOKS + 1  # ID of the thread that sends the worker's batches; 0 if unknown
_HEADER = 16
LONG = 6  # long samples: traced ones, seconds; skipped ones, seconds, seconds with known CPU time, and that CPU time
LONG_CLASSES = 8  # of long samples, by duration

CALLS_AT = _HEADER
WALL_AT = CALLS_AT + MAX_STAGES
CPU_AT = WALL_AT + MAX_STAGES
LONG_AT = CPU_AT + MAX_STAGES
LONG_WALL_AT = LONG_AT + LONG * LONG_CLASSES  # seconds by class and stage of long samples, also part of the sums before
LONG_CPU_AT = LONG_WALL_AT + MAX_STAGES * LONG_CLASSES
BINS_AT = LONG_CPU_AT + MAX_STAGES * LONG_CLASSES
BIN_SUMS_AT = BINS_AT + BINS
STACKS_AT = BIN_SUMS_AT + BINS
SLOW_AT = STACKS_AT + FRAMES
_SPANS_AT = SLOW_AT + SLOWEST * SLOW_FIELDS
_FLOATS = _SPANS_AT + SPANS * SPAN_FIELDS
_NAMES: Final = _FLOATS * 8
_PATHS: Final = _NAMES + MAX_STAGES * NAME_BYTES
_REASON: Final = _PATHS + SLOWEST * PATH_BYTES
_FRAME_TEXTS: Final = _REASON + PATH_BYTES
BLOCK_BYTES: Final = _FRAME_TEXTS + FRAMES * FRAME_BYTES


class SeenFrame(NamedTuple):
    """A node of the call tree: a frame, and the position of its caller.

    A root, whose caller is `NOBODY`, represents a stage: it has no file, and its function is the stage's name.
    """

    caller: int
    frame: CodeFrame


NOBODY = -1


class Block:
    """One worker's region of the shared memory. `memory` is any object with a byte buffer."""

    def __init__(self, memory: Any, worker: int = 0) -> None:
        whole = memoryview(memory).cast("B")
        self._bytes = whole[worker * BLOCK_BYTES : (worker + 1) * BLOCK_BYTES]
        floats = self._bytes[: _FLOATS * 8].cast("d")
        self.header = floats[:_HEADER]
        self.calls, self.wall_s, self.cpu_s = (floats[at : at + MAX_STAGES] for at in (CALLS_AT, WALL_AT, CPU_AT))
        self.long, self.long_wall_s = floats[LONG_AT:LONG_WALL_AT], floats[LONG_WALL_AT:LONG_CPU_AT]
        self.long_cpu_s = floats[LONG_CPU_AT:BINS_AT]
        self.bins, self.bin_sums_s = floats[BINS_AT:BIN_SUMS_AT], floats[BIN_SUMS_AT:STACKS_AT]
        self.stack_s = floats[STACKS_AT:SLOW_AT]
        self.slow, self.spans = floats[SLOW_AT:_SPANS_AT], floats[_SPANS_AT:]

    def counters(self) -> list[float]:
        """A copy of all additive counters. The difference of two copies is the activity between them."""
        of_stages = (*self.calls, *self.wall_s, *self.cpu_s, *self.long, *self.long_wall_s, *self.long_cpu_s)
        return [*self.header, *of_stages, *self.bins, *self.bin_sums_s, *self.stack_s]

    def add_times(self, samples: int, took_s: float) -> None:
        """Add samples to the histogram that took equally long, and `took_s` seconds together."""
        place = bin_of(took_s / samples)
        self.bins[place] += samples
        self.bin_sums_s[place] += took_s

    def slow_indices(self) -> list[int]:
        """Dataset indices of the slow samples, for samples that have an index."""
        walls_s, indices = self.slow[::SLOW_FIELDS], self.slow[1::SLOW_FIELDS]
        return [int(index) for wall_s, index in zip(walls_s, indices, strict=True) if wall_s > 0 and index >= 0]

    def names(self) -> list[tuple[str, str]]:
        """Stage and part of every registered place."""
        found = (self._text(_NAMES + place * NAME_BYTES, NAME_BYTES) for place in range(int(self.header[STAGES])))
        return [(stage, part) for stage, _, part in (text.partition("/") for text in found)]

    def span_stages(self) -> list[str]:
        """The stages that have a column in a batch's span. Stages seen later count as the sample's own time."""
        return list(dict.fromkeys(stage for stage, _ in self.names()))[:SPAN_STAGES]

    def add_name(self, stage: str, part: str) -> None:
        """Register the next place under this stage and part."""
        place = int(self.header[STAGES])
        self._write(_NAMES + place * NAME_BYTES, NAME_BYTES, f"{stage}/{part}")
        self.header[STAGES] = place + 1

    def frames(self) -> list[SeenFrame]:
        """The nodes of the call tree, in the order of `stack_s`. Each frame comes after its caller."""
        known = range(int(self.header[FRAMES_KNOWN]))
        parts = (self._text(_FRAME_TEXTS + place * FRAME_BYTES, FRAME_BYTES).split("\t") for place in known)
        return [SeenFrame(int(caller), CodeFrame(file, int(line), name)) for caller, line, name, file in parts]

    def add_frame(self, seen: SeenFrame) -> int:
        """Append a frame, already shortened by `fitted`, and return its position."""
        place, frame = int(self.header[FRAMES_KNOWN]), seen.frame
        text = f"{seen.caller}\t{frame.line}\t{frame.function}\t{frame.file}"
        self._write(_FRAME_TEXTS + place * FRAME_BYTES, FRAME_BYTES, text)
        self.header[FRAMES_KNOWN] = place + 1
        return place

    def path(self, place: int) -> str:
        """The path of a slow sample; empty if unknown."""
        return self._text(_PATHS + place * PATH_BYTES, PATH_BYTES)

    def set_path(self, place: int, path: str) -> None:
        """Store the path of a slow sample, or only its end if it is too long."""
        data = path.encode("utf-8", "surrogateescape")
        if len(data) > PATH_BYTES:
            path = "..." + data[3 - PATH_BYTES :].decode("utf-8", "ignore")
        self._write(_PATHS + place * PATH_BYTES, PATH_BYTES, path)

    @property
    def reason(self) -> str:
        """Why this worker could not be traced; empty if it was traced."""
        return self._text(_REASON, PATH_BYTES)

    def fail(self, reason: str) -> None:
        """Record why this worker could not be traced."""
        self._write(_REASON, PATH_BYTES, reason)

    def _text(self, at: int, size: int) -> str:
        return bytes(self._bytes[at : at + size]).split(b"\0", 1)[0].decode("utf-8", "replace")

    def _write(self, at: int, size: int, text: str) -> None:
        data = text.encode("utf-8", "surrogateescape")[:size]
        self._bytes[at : at + size] = data + bytes(size - len(data))


def fitted(frame: CodeFrame) -> CodeFrame:
    """The frame shortened to what a block can store: the start of a long name, the end of a long path."""
    return CodeFrame(
        _cut(frame.file, slice(-FILE_BYTES, None)), frame.line, _cut(frame.function, slice(NAME_BYTES // 2))
    )


def _cut(text: str, part: slice) -> str:
    """A byte slice of `text` on one line, without partial characters."""
    return text.encode("utf-8", "replace")[part].decode("utf-8", "ignore").replace("\t", " ")


def add_read(sums: list[float], read_bytes: float, blocked_s: float) -> None:
    """Add a sample to the `READS`, sums for a linear fit of blocked seconds against bytes."""
    blocked_s = max(0.0, blocked_s)
    sums[0] += 1
    sums[1] += read_bytes
    sums[2] += blocked_s
    sums[3] += read_bytes * read_bytes
    sums[4] += read_bytes * blocked_s
    sums[5] += blocked_s * blocked_s
