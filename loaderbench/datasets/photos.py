"""Writes folders of photo-like JPEGs that cost what photographs cost to store, read and decode.

Noise or flat colours would measure another decoder than the one that meets photographs: its time goes by the pixel and
by the coded byte, and both are taken from a real collection here. `benchmarks/photos.py` holds the result against
photographs.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from loaderbench.datasets.cache_folder import usable_cores, user_cache
from loaderbench.datasets.photo_jpeg import photo_jpeg, reference_jpeg
from loaderbench.errors import UsageError

__all__ = ["FORMAT_VERSION", "LIKE", "cached_photos", "generate_photos", "reference_jpeg"]

FORMAT_VERSION = 1  # a step up makes every cached folder be painted anew: take it with any change of the pictures
LIKE = ("imagenet",)
_UNFINISHED = ".unfinished"
_STALE_S = 3600.0

OnProgress = Callable[[int, int], None]
"""Called with (photos done, photos in all), in the caller's thread."""


def generate_photos(
    folder: Path,
    *,
    images: int,
    seed: int = 0,
    like: str = "imagenet",
    classes: int = 8,
    on_progress: OnProgress | None = None,
    threads: int | None = None,
) -> None:
    """Write `folder/class_00/photo_00000.jpg` and so on, spread evenly over the classes.

    Photo i depends on the seed and on i alone. `folder` appears complete or not at all; one that another process
    completed meanwhile is left as it is. Raises `UsageError` when it holds something already, or an argument is wrong.
    """
    if _holds_something(folder):
        raise UsageError(f"{folder} is there already and not empty; name another folder")
    if like not in LIKE:
        raise UsageError(f"photos like {like!r} are not known; known: {', '.join(LIKE)}")
    if images < 1 or classes < 1:
        raise UsageError(f"at least one image and one class are needed, not {images} and {classes}")
    unfinished = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}{_UNFINISHED}")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _remove_stale(folder.parent)
        paths = _photo_paths(unfinished, images, min(classes, images))
        for class_folder in {path.parent for path in paths}:
            class_folder.mkdir(parents=True)
        _write_all(paths, seed, on_progress or _say_nothing, threads or usable_cores())
        _move_into_place(unfinished, folder)
    except OSError as error:
        raise UsageError(f"{folder}: cannot be written to: {error.strerror or error}") from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _remove_stale(parent: Path) -> None:
    """Remove what a call that was killed has left; one that still runs is younger than this."""
    for left in parent.glob(f".*{_UNFINISHED}"):
        if time.time() - left.stat().st_mtime > _STALE_S:
            shutil.rmtree(left, ignore_errors=True)


def cached_photos(
    *,
    images: int,
    seed: int = 0,
    like: str = "imagenet",
    cache_dir: Path | None = None,
    on_progress: OnProgress | None = None,
) -> Path:
    """These photos' folder in the user's cache, painted at the first call; `LOADERBENCH_CACHE` moves the cache."""
    root = cache_dir if cache_dir is not None else user_cache()
    folder = root / "photos" / f"{like}-{images}-seed{seed}-v{FORMAT_VERSION}"
    if not _holds_something(folder):
        generate_photos(folder, images=images, seed=seed, like=like, on_progress=on_progress)
    return folder


def _holds_something(folder: Path) -> bool:
    return folder.exists() and (not folder.is_dir() or any(folder.iterdir()))


def _photo_paths(folder: Path, images: int, classes: int) -> list[Path]:
    return [folder / f"class_{index % classes:02d}" / f"photo_{index:05d}.jpg" for index in range(images)]


def _write_all(paths: list[Path], seed: int, on_progress: OnProgress, threads: int) -> None:
    """Threads suffice: NumPy, SciPy's transforms and Pillow's encoder work outside the interpreter lock."""
    pool = ThreadPoolExecutor(threads, thread_name_prefix="photos")
    try:
        waiting = [pool.submit(_write_one, path, seed, index) for index, path in enumerate(paths)]
        for done, future in enumerate(as_completed(waiting), start=1):
            future.result()
            on_progress(done, len(paths))
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _write_one(path: Path, seed: int, index: int) -> None:
    path.write_bytes(photo_jpeg(seed, index))


def _move_into_place(unfinished: Path, folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()  # an empty one: not every system renames onto it
    try:
        unfinished.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise


def _say_nothing(done: int, total: int) -> None:
    pass
