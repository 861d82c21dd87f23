"""Turns stack samples of loading threads into a record of their stacks, each with the stage of its calls."""

from __future__ import annotations

import linecache
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from loaderbench.code_places import CodeFrame, CodeStack, is_library, shown_path
from loaderbench.records import CodeLooks, CountedStack, StackFrame, Stage

FEWEST_LOOKS = 20
TOO_FEW = f"fewer than {FEWEST_LOOKS} stack samples of the loading threads"

RARE_SHARE = 0.005
"""Rarer stacks are merged into their caller, except for lines of user code and the calls that they make."""


Calls = tuple[CodeFrame, ...]

_COLLATE = "torch/utils/data/_utils/collate.py"
_DECODING = re.compile(r"^(load|decode|_?open|draft|convert|_getdecoder|getmodel|verify|load_prepare|load_end)$")
_BY_FILE: tuple[tuple[Stage, re.Pattern[str]], ...] = (
    ("transform", re.compile(r"torchvision/transforms|/(albumentations|albucore|kornia|monai|torchaudio)/")),
    ("decode", re.compile(r"torchvision/io|/(simplejpeg|imageio|tifffile|decord|av)/")),
    (
        "read",
        re.compile(r"/(zipfile|tarfile|gzip|socket|ssl|lmdb|h5py|fsspec|s3fs|boto3|botocore|requests)[./]|/http/"),
    ),
)
_BY_TEXT: tuple[tuple[Stage, re.Pattern[str]], ...] = (
    ("decode", re.compile(r"\b(imread|imdecode|decode_(image|jpeg|png))\(")),
    ("read", re.compile(r"\.read(_bytes|_text|into)?\(|\bopen\(|\bnp\.(load|memmap|fromfile)\(")),
)
"""Calls of compiled functions have no frame, but the line that makes the call names the function."""

_TRANSFORM_WORDS = ("transform", "augment", "preprocess")


def code_looks_of(stacks: Mapping[CodeStack, float], looks: int, folder: str) -> CodeLooks | None:
    """The record of these stacks, in seconds each, with paths relative to a folder.

    `looks` is the number of stack samples. Returns `None` if there are too few.
    """
    if looks < FEWEST_LOOKS:
        return None
    merged = _without_rare(_with_stages(stacks), RARE_SHARE * sum(stacks.values()))
    places: dict[CodeFrame, int] = {}
    counted = [
        CountedStack(
            stage,
            tuple(places.setdefault(frame, len(places)) for frame in frames),
            round(seconds, 4),
            likely_stage=_by_frames(frames) if stage == "sample" else "",
        )
        for (stage, frames), seconds in sorted(merged.items(), key=lambda item: -item[1])
    ]
    return CodeLooks(looks, tuple(_shown(frame, folder) for frame in places), tuple(counted))


def _with_stages(stacks: Mapping[CodeStack, float]) -> dict[CodeStack, float]:
    """Give a stack from an untimed sample the stage that timed samples had in the same calls."""
    by_clocks: dict[Calls, dict[str, float]] = {}
    for stack, seconds in stacks.items():
        for depth in range(1, len(stack.frames) + 1) if stack.stage else ():
            by_clocks.setdefault(stack.frames[:depth], defaultdict(float))[stack.stage] += seconds
    found: dict[CodeStack, float] = {}
    for stack, seconds in stacks.items():
        known = CodeStack(stack.stage or _stage_by_clocks(stack.frames, by_clocks) or stage_of(stack), stack.frames)
        found[known] = found.get(known, 0.0) + seconds
    return found


def _stage_by_clocks(frames: Calls, by_clocks: Mapping[Calls, dict[str, float]]) -> str:
    """The most frequent stage of the longest prefix of these calls that has timed stages; empty without one."""
    known = (by_clocks[frames[:depth]] for depth in range(len(frames), 0, -1) if frames[:depth] in by_clocks)
    return next((max(stages, key=lambda stage: stages[stage]) for stages in known), "")


def _without_rare(stacks: Mapping[CodeStack, float], fewest_s: float) -> dict[CodeStack, float]:
    """Merge each rare stack into that of its caller, deepest first."""
    merged = dict(stacks)
    for depth in range(max(len(stack.frames) for stack in stacks), 0, -1):
        for stack in [one for one in merged if len(one.frames) == depth and depth > _kept(one)]:
            if merged[stack] < fewest_s:
                seconds, caller = merged.pop(stack), CodeStack(stack.stage, stack.frames[:-1])
                merged[caller] = merged.get(caller, 0.0) + seconds
    return merged


def _kept(stack: CodeStack) -> int:
    """The number of frames to keep: down to the call that the innermost line of user code makes."""
    own = [depth for depth, frame in enumerate(stack.frames, 1) if not is_library(frame.file)]
    return own[-1] + 1 if own else 1


def _shown(frame: CodeFrame, folder: str) -> StackFrame:
    own = not is_library(frame.file)
    return StackFrame(
        file=shown_path(frame.file, folder),
        line=frame.line,
        function=frame.function,
        own=own,
        text=linecache.getline(frame.file, frame.line).strip()[:200] if own else "",
    )


def stage_of(stack: CodeStack) -> str:
    """The stage known when the stack was sampled, else the stage that the frames suggest."""
    return stack.stage or _by_frames(stack.frames)


def _by_frames(frames: Sequence[CodeFrame]) -> Stage:
    """The stage suggested by a library's file, a function's name, or the line itself."""
    if any(frame.file.endswith(_COLLATE) for frame in frames) or (frames and "collate" in frames[0].function.lower()):
        return "collate"
    if any("/PIL/" in frame.file and _DECODING.match(_name(frame)) for frame in frames):
        return "decode"
    text = linecache.getline(frames[-1].file, frames[-1].line) if frames else ""
    for frame in frames:
        if "/PIL/" in frame.file or any(word in frame.function.lower() for word in _TRANSFORM_WORDS):
            return "transform"
        for stage, pattern in _BY_FILE:
            if pattern.search(frame.file):
                return "sample" if stage == "read" and "decompress(" in text else stage
    return next((stage for stage, pattern in _BY_TEXT if pattern.search(text)), "sample")


def _name(frame: CodeFrame) -> str:
    return frame.function.rpartition(".")[2]
