"""Write folders of synthetic JPEGs that cost as much to store, read and decode as photographs.

Noise or flat colors would exercise a decoder differently than photographs. Decoding time depends on the number of
pixels and coded bytes, and both are taken from a real collection. `benchmarks/photos.py` compares the result with
photographs.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import secrets
import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile

from loaderbench.cache_folder import user_cache
from loaderbench.cpu_lists import usable_cores
from loaderbench.datasets.photo_scenes import Scene, paint
from loaderbench.datasets.photo_statistics import PhotoRecipe, draw_recipe
from loaderbench.errors import UsageError
from loaderbench.new_files import write_whole
from loaderbench.options import not_one_of

FORMAT_VERSION = 1  # increment when the pictures change: every cached folder is then painted again
LIKE = ("imagenet",)
CLASSES = 8
_UNFINISHED = ".unfinished"
_STALE_S = 3600.0

_TOLERANCE = 0.02  # relative error of the file size
_ENCODINGS = 4
_GAINS = (0.5, 90.0)  # gray levels: less is invisible, and more clips most of the texture to black and white
_USUAL_SLOPE = 0.5  # d log(bytes) / d log(gain), the median of measured slopes
_COMMENT = b"Painted by loaderbench. These bytes stand where photographs keep EXIF data and colour profiles. "

OnProgress = Callable[[int, int], None]
"""Called with (photos done, total photos), in the caller's thread."""


def generate_photos(
    folder: Path,
    *,
    images: int,
    seed: int = 0,
    like: str = "imagenet",
    classes: int = CLASSES,
    on_progress: OnProgress | None = None,
    threads: int | None = None,
) -> None:
    """Write `folder/class_00/photo_00000.jpg` and so on, spread evenly over the classes.

    Photo i depends only on the seed and on i. `folder` appears complete or not at all; if another process completed it
    in the meantime, its photos stay. Raises `UsageError` if the folder is not empty or an argument is wrong.
    """
    folder = folder.absolute()  # `.` has no name
    if _holds_something(folder):
        what = "folder exists and is not empty" if folder.is_dir() else "is a file"
        raise UsageError(f"{folder}: {what}; choose another folder")
    if like not in LIKE:
        raise UsageError(f"like: {not_one_of(like, [*LIKE])}")
    if images < 1 or classes < 1:
        raise UsageError(f"images and classes must be 1 or more, got {images} and {classes}")
    unfinished = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}{_UNFINISHED}")

    def progress(done: int, total: int) -> None:
        os.utime(unfinished)  # tells `_remove_stale` that the folder is in use
        (on_progress or _ignore_progress)(done, total)

    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _remove_stale(folder.parent)
        photos = [*enumerate(_photo_paths(unfinished, images, classes))]
        _write_all(photos, seed, progress, threads or usable_cores())
        _move_into_place(unfinished, folder)
    except OSError as error:
        raise UsageError(f"{folder}: cannot write: {error.strerror or error}") from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _remove_stale(parent: Path) -> None:
    """Remove unfinished folders of killed calls. Folders of running calls are younger than `_STALE_S`."""
    for left in parent.glob(f".*.{'[0-9a-f]' * 8}{_UNFINISHED}"):
        with contextlib.suppress(OSError):  # another call may remove the folder, too
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
    """The folder of these photos in the user's cache, generated on first use. `LOADERBENCH_CACHE` moves the cache.

    Photos that are missing or empty are generated again. Raises `UsageError` if the cache cannot be written.
    """
    root = cache_dir if cache_dir is not None else user_cache()
    folder = root / "photos" / f"{like}-{images}-seed{seed}-v{FORMAT_VERSION}"
    if not folder.is_dir() or not _holds_something(folder):
        generate_photos(folder, images=images, seed=seed, like=like, on_progress=on_progress)
        return folder
    missing = [(number, path) for number, path in enumerate(_photo_paths(folder, images)) if _is_missing(path)]
    if missing:
        try:
            _write_all(missing, seed, on_progress or _ignore_progress, usable_cores())
        except OSError as error:
            raise UsageError(f"{folder}: cannot write: {error.strerror or error}") from None
    return folder


def _holds_something(folder: Path) -> bool:
    return folder.exists() and (not folder.is_dir() or any(folder.iterdir()))


def _is_missing(file: Path) -> bool:
    try:
        return file.stat().st_size == 0
    except OSError:
        return True


def _photo_paths(folder: Path, images: int, classes: int = CLASSES) -> list[Path]:
    classes = min(classes, images)
    return [folder / f"class_{index % classes:02d}" / f"photo_{index:05d}.jpg" for index in range(images)]


def _write_all(photos: Sequence[tuple[int, Path]], seed: int, on_progress: OnProgress, threads: int) -> None:
    """Write photos, given by number and path, in threads: NumPy, SciPy and Pillow's encoder release the GIL."""
    for class_folder in {path.parent for _, path in photos}:
        class_folder.mkdir(parents=True, exist_ok=True)
    pool = ThreadPoolExecutor(threads, thread_name_prefix="photos")
    try:
        waiting = [pool.submit(_write_one, path, seed, index) for index, path in photos]
        for done, future in enumerate(as_completed(waiting), start=1):
            future.result()
            on_progress(done, len(photos))
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _write_one(path: Path, seed: int, index: int) -> None:
    write_whole(path, photo_jpeg(seed, index), shared=True)


def _move_into_place(unfinished: Path, folder: Path) -> None:
    if folder.is_dir() and folder.samefile(Path.cwd()):  # the working directory of a shell
        _move_contents(unfinished, folder)
        return
    with contextlib.suppress(OSError):
        folder.rmdir()  # remove an empty folder: not every system renames onto it
    try:
        unfinished.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
        if not _holds_something(folder):  # a link to an empty folder, or a mount point
            _move_contents(unfinished, folder)


def _move_contents(unfinished: Path, folder: Path) -> None:
    for path in unfinished.iterdir():
        shutil.move(path, folder / path.name)  # also works across file systems


def _ignore_progress(done: int, total: int) -> None:
    pass


def photo_jpeg(seed: int, index: int, size: tuple[int, int] | None = None) -> bytes:
    """The JPEG file of photo `index` in the collection of `seed`, optionally at another `size` (width, height)."""
    recipe = draw_recipe(seed, index)
    if size is not None:
        recipe = replace(recipe, width=size[0], height=size[1])
    scene = paint(np.random.default_rng([seed, index]), recipe.height, recipe.width, _busyness(recipe))
    return _encode_to_size(scene, recipe)


def reference_jpeg() -> bytes:
    """A fixed synthetic JPEG of 500x375 pixels, quality 95, 4:4:4. Decoding it is a constant amount of work."""
    scene = paint(np.random.default_rng(0), height=375, width=500, busy=0.5)
    return _encode(scene.render(gain=20.0), 95, "4:4:4")


def _encode(image: Image.Image, quality: int, subsampling: str, metadata_bytes: int = 0) -> bytes:
    """Encode a baseline JPEG with optimized Huffman tables, as nine in ten of the measured photographs have.

    The quantization tables are passed explicitly, because Pillow then reserves two bytes per pixel. With `quality`
    below 95 it reserves one byte, and fails if an optimized file is larger.
    """
    file = io.BytesIO()
    comment = (_COMMENT * (metadata_bytes // len(_COMMENT) + 1))[:metadata_bytes]
    image.save(file, "JPEG", qtables=_tables(quality), subsampling=subsampling, optimize=True, comment=comment)
    return file.getvalue()


@lru_cache
def _tables(quality: int) -> dict[int, list[int]]:
    """Return libjpeg's quantization tables, luminance and chrominance, for `quality`."""
    file = io.BytesIO()
    Image.new("YCbCr", (8, 8)).save(file, "JPEG", quality=quality)
    file.seek(0)
    with JpegImageFile(file) as image:
        return dict(image.quantization)


def _encode_to_size(scene: Scene, recipe: PhotoRecipe) -> bytes:
    """Find the gain by secant steps on log gain and log bytes, whose relation is nearly linear."""
    wanted = math.log(recipe.bytes_per_pixel * recipe.width * recipe.height)
    log_gain, slope = _first_log_gain(scene, recipe), _USUAL_SLOPE
    before: tuple[float, float] | None = None
    data = b""
    for _ in range(_ENCODINGS):
        log_gain = min(max(log_gain, math.log(_GAINS[0])), math.log(_GAINS[1]))
        data = _encode(
            scene.render(math.exp(log_gain), gray=recipe.gray),
            recipe.quality,
            recipe.subsampling,
            recipe.metadata_bytes,
        )
        error = math.log(len(data)) - wanted
        if abs(error) < _TOLERANCE:
            break
        if before and abs(log_gain - before[0]) > 1e-3:
            slope = min(max((error - before[1]) / (log_gain - before[0]), 0.2), 1.5)
        before = (log_gain, error)
        log_gain -= error / slope
    return data


def _difficulty(recipe: PhotoRecipe) -> float:
    """How much detail fills this many bytes at this quality: about 0 for a plain picture, 1.2 for a busy one."""
    coarseness = math.log(np.mean(_tables(recipe.quality)[0]))
    return math.log(recipe.bytes_per_pixel) + 0.6 * coarseness + (0.4 if recipe.gray else 0.0)


def _busyness(recipe: PhotoRecipe) -> float:
    return min(max(_difficulty(recipe) / 1.2, 0.0), 1.0)


def _first_log_gain(scene: Scene, recipe: PhotoRecipe) -> float:
    """A linear fit to the gains of 512 photos; half of its estimates are within 10% in bytes."""
    step = np.abs(np.diff(scene.texture[::4], axis=1))  # between neighboring pixels, on every fourth row
    roughness = float(np.log(step + 1e-3).mean())
    halved_chroma = 0.4 if recipe.subsampling == "4:2:0" else 0.0
    return 2.5 * _difficulty(recipe) + halved_chroma - roughness
