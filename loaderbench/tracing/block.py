"""The memory that a worker writes and the main process reads: counters, never a queue, so nobody waits.

Everything is a float of eight bytes, written whole; a reader may be one batch behind and never sees half a number.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from loaderbench.code_places import CodeFrame
from loaderbench.histogram import BINS

MAX_STAGES = 64
NAME_BYTES = 128
SLOWEST = 32
PATH_BYTES = 256
SPANS = 2_048  # the last batches that a worker remembers
SPAN_STAGES = 8  # wall seconds of a batch by stage, in the order in which `stages` names them
SPAN_FIELDS = 4 + SPAN_STAGES  # began_s, collate_began_s, ended_s, samples, and the stages
FRAMES = 512  # in the tree of all stacks that a worker was found at
FRAME_BYTES, FILE_BYTES = 256, 160
SLOW_FIELDS = 4  # wall_s, index (-1: none), stage, ended_s

ENABLED, BATCHES, SAMPLES, TRACED, STAGES, SINCE_S = range(6)
READS_AT = 6  # samples that read, their bytes, blocked seconds, and the sums of bytes^2 and bytes * seconds
READS = 5
FRAMES_KNOWN = READS_AT + READS
LOOKS = FRAMES_KNOWN + 1
_HEADER = 16

CALLS_AT = _HEADER
WALL_AT = CALLS_AT + MAX_STAGES
CPU_AT = WALL_AT + MAX_STAGES
BINS_AT = CPU_AT + MAX_STAGES
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
    """A frame in the tree of stacks, and the place of its caller.

    A root, called by `NOBODY`, is a stage: it has no file, and its function is the stage's name.
    """

    caller: int
    frame: CodeFrame


NOBODY = -1


class Block:
    """One worker's part of the shared memory; `memory` is anything that has a buffer of bytes."""

    def __init__(self, memory: Any, worker: int = 0) -> None:
        whole = memoryview(memory).cast("B")
        self._bytes = whole[worker * BLOCK_BYTES : (worker + 1) * BLOCK_BYTES]
        floats = self._bytes[: _FLOATS * 8].cast("d")
        self.header = floats[:_HEADER]
        self.calls, self.wall_s, self.cpu_s = (floats[at : at + MAX_STAGES] for at in (CALLS_AT, WALL_AT, CPU_AT))
        self.bins, self.bin_sums_s = floats[BINS_AT:BIN_SUMS_AT], floats[BIN_SUMS_AT:STACKS_AT]
        self.stack_s = floats[STACKS_AT:SLOW_AT]
        self.slow, self.spans = floats[SLOW_AT:_SPANS_AT], floats[_SPANS_AT:]

    def counters(self) -> list[float]:
        """A copy of everything that is added up; the difference of two copies is what happened in between."""
        return [*self.header, *self.calls, *self.wall_s, *self.cpu_s, *self.bins, *self.bin_sums_s, *self.stack_s]

    def slow_indices(self) -> list[int]:
        """Those of the slow samples that have one, in the dataset's numbers."""
        walls_s, indices = self.slow[::SLOW_FIELDS], self.slow[1::SLOW_FIELDS]
        return [int(index) for wall_s, index in zip(walls_s, indices, strict=True) if wall_s > 0 and index >= 0]

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

    def frames(self) -> list[SeenFrame]:
        """The tree of stacks that were seen, in the order of its seconds; each frame comes after its caller."""
        known = range(int(self.header[FRAMES_KNOWN]))
        parts = (self._text(_FRAME_TEXTS + place * FRAME_BYTES, FRAME_BYTES).split("\t") for place in known)
        return [SeenFrame(int(caller), CodeFrame(file, int(line), name)) for caller, line, name, file in parts]

    def add_frame(self, seen: SeenFrame) -> int:
        """Keep another frame, one that is `fitted`, and return its place."""
        place, frame = int(self.header[FRAMES_KNOWN]), seen.frame
        text = f"{seen.caller}\t{frame.line}\t{frame.function}\t{frame.file}"
        self._write(_FRAME_TEXTS + place * FRAME_BYTES, FRAME_BYTES, text)
        self.header[FRAMES_KNOWN] = place + 1
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


def fitted(frame: CodeFrame) -> CodeFrame:
    """As a block can keep it: the beginning of a long name, the end of a long path."""
    return CodeFrame(
        _cut(frame.file, slice(-FILE_BYTES, None)), frame.line, _cut(frame.function, slice(NAME_BYTES // 2))
    )


def _cut(text: str, part: slice) -> str:
    """A part of its bytes, without halves of characters, as one line."""
    return text.encode("utf-8", "replace")[part].decode("utf-8", "ignore").replace("\t", " ")
