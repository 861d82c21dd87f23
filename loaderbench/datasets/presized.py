"""Copies of a folder's images at the size that training needs, written once and kept in the user's cache."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from PIL import Image

from loaderbench.cache_folder import usable_cores, user_cache
from loaderbench.errors import MissingError

QUALITY = 90  # of the copies, as JPEG; what most training sets were saved with, or better


def presized_copies(
    samples: Sequence[tuple[str, int]],
    side: int,
    *,
    cache_dir: Path | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> tuple[tuple[str, int], ...]:
    """The same samples, from copies whose shorter side has `side` pixels; smaller images are left as they are.

    A copy is made once for each state of its original, complete or not at all. What cannot be read is left as it is,
    for the trial to meet it and name it. What `on_progress` raises ends the writing; copies that are written are kept.
    Raises `MissingError` if the cache cannot be written to.
    """
    folder = (cache_dir or user_cache()) / "presized" / str(side)
    made: list[tuple[str, int]] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _pool() as pool:
            copies = pool.map(lambda sample: _copy(sample[0], side, folder), samples)
            for path, (_, label) in zip(copies, samples, strict=True):
                made.append((path, label))
                if on_progress is not None:
                    on_progress(len(made), len(samples))
    except OSError as error:
        said = f"presize={side}: cannot write to {folder}: {error.strerror or error}"
        raise MissingError(f"{said}; set LOADERBENCH_CACHE to another folder") from error
    return tuple(made)


@contextmanager
def _pool() -> Iterator[ThreadPoolExecutor]:
    """A thread for each core. An error, or Ctrl-C, ends it after the copies that have begun."""
    with ThreadPoolExecutor(usable_cores()) as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _copy(path: str, side: int, folder: Path) -> str:
    try:
        copy = folder / _name_of(path)
        if copy.exists():
            return str(copy)
        small = _smaller(path, side)
    except Exception:  # Pillow's own errors have no common ground
        return path
    if small is None:
        return path
    unfinished = copy.with_suffix(f".{os.getpid()}.{id(small)}")
    try:
        small.save(unfinished, "JPEG", quality=QUALITY)
        unfinished.replace(copy)
    finally:
        unfinished.unlink(missing_ok=True)
    return str(copy)


def _name_of(path: str) -> str:
    """The copy's, by the state of its original."""
    stat = Path(path).stat()
    state = f"{Path(path).absolute()}\0{stat.st_size}\0{stat.st_mtime_ns}\0{QUALITY}"
    return f"{hashlib.sha256(state.encode('utf-8', 'surrogateescape')).hexdigest()[:32]}.jpg"


def _smaller(path: str, side: int) -> Image.Image | None:
    """The image with its shorter side so long; `None` where it is not longer now."""
    with Image.open(path) as image:
        shorter = min(image.size)
        if shorter <= side:
            return None
        size = (round(image.width * side / shorter), round(image.height * side / shorter))
        return image.convert("RGB").resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0)
