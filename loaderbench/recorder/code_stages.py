"""Which stage of a sample a stack is in, by the names of libraries, functions and calls in it."""

from __future__ import annotations

import linecache
import re
from collections.abc import Sequence

from loaderbench.code_places import CodeFrame, CodeStack
from loaderbench.records import Stage

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
"""Calls of compiled functions have no frame of their own: the line that makes them names them."""

_TRANSFORM_WORDS = ("transform", "augment", "preprocess")


def stage_of(stack: CodeStack) -> str:
    """The stage that was known when the stack was read, else what its frames say."""
    return stack.stage or _by_frames(stack.frames)


def _by_frames(frames: Sequence[CodeFrame]) -> Stage:
    """By the library's file, the function's name, or the line itself."""
    if any(frame.file.endswith(_COLLATE) for frame in frames) or (frames and "collate" in frames[0].function.lower()):
        return "collate"
    if any("/PIL/" in frame.file and _DECODING.match(_name(frame)) for frame in frames):
        return "decode"
    for frame in frames:
        if "/PIL/" in frame.file or any(word in frame.function.lower() for word in _TRANSFORM_WORDS):
            return "transform"
        for stage, pattern in _BY_FILE:
            if pattern.search(frame.file):
                return stage
    text = linecache.getline(frames[-1].file, frames[-1].line) if frames else ""
    return next((stage for stage, pattern in _BY_TEXT if pattern.search(text)), "sample")


def _name(frame: CodeFrame) -> str:
    return frame.function.rpartition(".")[2]
