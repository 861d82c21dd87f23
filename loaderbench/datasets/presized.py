"""Copies of a folder's images at the size that training needs, written once to the user's cache."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from PIL import Image

from loaderbench.cache_folder import user_cache
from loaderbench.cpu_lists import usable_cores
from loaderbench.datasets.orientation import exif_of, orientation_of
from loaderbench.errors import MissingError
from loaderbench.new_files import write_whole

QUALITY = 90  # JPEG quality of the copies, at least that of most training sets


def presized_copies(
    samples: Sequence[tuple[str, int]],
    side: int,
    *,
    cache_dir: Path | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> tuple[tuple[str, int], ...]:
    """Return the samples with copies whose shorter side has `side` pixels; smaller images keep their file.

    Each state of an original is copied once, complete or not at all. Unreadable files are kept for the trial to
    report, and images too long for a JPEG keep their file. An exception from `on_progress` ends the writing and keeps
    finished copies. Raises `MissingError` if the cache is not writable.
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
        problem = f"presize={side}: cannot write to {folder}: {error.strerror or error}"
        raise MissingError(f"{problem}; set LOADERBENCH_CACHE to another folder") from error
    return tuple(made)


@contextmanager
def _pool() -> Iterator[ThreadPoolExecutor]:
    """A pool with one thread per core. On an error or Ctrl-C, it ends after the copies in progress."""
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
    except Exception:  # Pillow's exceptions have no common base class
        return path
    if small is None:
        return path
    write_whole(copy, small, shared=True)
    return str(copy)


def _name_of(path: str) -> str:
    """The file name of the copy, derived from the state of its original."""
    stat = Path(path).stat()
    state = f"{Path(path).absolute()}\0{stat.st_size}\0{stat.st_mtime_ns}\0{QUALITY}\0exif"
    return f"{hashlib.sha256(state.encode('utf-8', 'surrogateescape')).hexdigest()[:32]}.jpg"


def _smaller(path: str, side: int) -> bytes | None:
    """The image as a JPEG whose shorter side has `side` pixels; `None` if its shorter side is not longer.

    Raises `OSError` if the JPEG would be longer than 65,500 pixels.
    """
    with Image.open(path) as image:
        exif = exif_of(orientation_of(image))
        shorter = min(image.size)
        if shorter <= side:
            return None
        size = (round(image.width * side / shorter), round(image.height * side / shorter))
        small = image.convert("RGB").resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0)
    file = io.BytesIO()
    small.save(file, "JPEG", quality=QUALITY, exif=exif)
    return file.getvalue()
