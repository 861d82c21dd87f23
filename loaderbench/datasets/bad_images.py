"""Find images that cannot be decoded: all in a folder before the trials, or a quick count after a trial failed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache
from multiprocessing.connection import Connection
from typing import Any

from loaderbench.cpu_lists import usable_cores
from loaderbench.datasets.decoders import DECODERS, decode_pillow
from loaderbench.datasets.kind import Ask, Inputs, PrepareListener, Samples
from loaderbench.errors import MissingError

LOOK_S = 2.0  # time limit of the count after a failed trial
TIMEOUT_S = 3600.0
NAMED = 20  # at most this many excluded files are listed in run.json
_AT_ONCE = 64


def leave_out(inputs: Inputs, decoders: Sequence[str], ask: Ask, listener: PrepareListener) -> Inputs:
    """Exclude files that cannot be decoded, for all trials that read this choice of data.

    Raises `MissingError` if no file is left.
    """
    listener.doing(f"checking which of {len(inputs.samples):,} files can be decoded")
    bad = find_bad_images(ask, inputs.samples, decoders)
    good = tuple(sample for sample in inputs.samples if sample[0] not in bad)
    words = _in_words(bad, [path for path, _ in inputs.samples])
    if not good:
        by_each = f" by each decoder ({', '.join(decoders)})" if len(decoders) > 1 else ""
        raise MissingError(f"dataset.skip_bad: none of {len(bad):,} files can be decoded{by_each}; {words[0]}")
    reasons = {name: why for name, why in inputs.summary.not_measured.items() if name != "bad_files"}
    summary = replace(inputs.summary, files=len(good), bad_files=len(bad), bad_images=words, not_measured=reasons)
    return replace(inputs, samples=good, summary=summary)


def _in_words(bad: Mapping[str, str], paths: Iterable[str]) -> tuple[str, ...]:
    """Format each file as `class/name.jpg: Error: message`, with its path relative to the common folder."""
    root = os.path.commonpath({os.path.dirname(path) for path in paths})  # noqa: PTH120 - of a million files
    rows = sorted(bad.items())[:NAMED]
    return tuple(f"{os.path.relpath(path, root)}: {_without(path, why)}" for path, why in rows)


def _without(path: str, why: str) -> str:
    """Remove the path from a message, in plain form or as Pillow quotes it."""
    return why.replace(path, "...").replace(repr(path)[1:-1], "...")


def find_bad_images(ask: Ask, samples: Samples, decoders: Sequence[str]) -> dict[str, str]:
    """Decode each file once with each decoder in a child process; return path and error of each bad file.

    Raises `MissingError` if the child process dies, for example because a decoder crashes.
    """
    found = ask(_answer, [path for path, _ in samples], list(decoders), timeout_s=TIMEOUT_S)
    if not isinstance(found, dict):
        raise MissingError("dataset.skip_bad: the process that checked the files crashed, probably in a decoder")
    return found


def _answer(pipe: Connection, paths: list[str], decoders: list[str]) -> None:
    named = {f"{name}: " if len(decoders) > 1 else "": DECODERS[name] for name in decoders}
    with ThreadPoolExecutor(usable_cores()) as pool:
        whys = pool.map(lambda path: _why_bad(path, named), paths)
        pipe.send({path: why for path, why in zip(paths, whys, strict=True) if why is not None})


def hint_of_bad_image(samples: Samples, message: str, hint: str, *, decoder: str, copied: str) -> str:
    """Write the hint for a trial that could not decode a file: what to do, and how many such files there are.

    `message` names the file. `copied` says how to repair the copy or object that the trial read instead of the file;
    it is empty if the trial read the file itself.
    """
    named = next((path for path, _ in samples if f"{path}: " in message), None)
    if named is not None and _why_bad(named, {"": decode_pillow}) is None:
        if not decoder.startswith("pillow"):
            return f"Pillow decodes this file: use decoder: pillow, not {decoder}"
        if copied:
            return f"Pillow decodes the file itself; {copied}"
    return f"{_count_in_words(samples)}. {hint[:1].upper()}{hint[1:]}" if samples else hint


def _count_in_words(samples: Samples) -> str:
    """Describe how many files Pillow cannot decode."""
    bad, seen = count_bad_images(samples)
    files = f"{seen:,} files" if seen == len(samples) else f"the first {seen:,} of {len(samples):,} files"
    return f"Pillow cannot decode {bad:,} of {files}"


@lru_cache(maxsize=1)
def count_bad_images(samples: Samples, look_s: float = LOOK_S) -> tuple[int, int]:
    """Count the files that Pillow cannot decode and the files checked within `look_s`. Cached for the latest folder."""
    until_s, bad, seen = time.monotonic() + look_s, 0, 0
    with ThreadPoolExecutor(usable_cores()) as pool:
        for paths in _portions([path for path, _ in samples]):
            bad += sum(why is not None for why in pool.map(lambda path: _why_bad(path, {"": decode_pillow}), paths))
            seen += len(paths)
            if time.monotonic() > until_s:
                break
    return bad, seen


def _portions(paths: Sequence[str]) -> Iterator[Sequence[str]]:
    return (paths[begin : begin + _AT_ONCE] for begin in range(0, len(paths), _AT_ONCE))


def _why_bad(path: str, decoders: Mapping[str, Callable[[str], Any]]) -> str | None:
    """Return the error of the first decoder that fails, after its prefix; `None` if all decode the file."""
    for named, decode in decoders.items():
        try:
            decode(path)
        except Exception as error:  # each library has its own exceptions, not all of them an OSError
            return f"{named}{type(error).__name__}: {error}"
    return None
