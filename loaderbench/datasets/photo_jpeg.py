"""Turns a recipe into a JPEG of the wanted size, by finding the strength of texture that costs so many bytes."""

from __future__ import annotations

import io
import math
from functools import lru_cache

import numpy as np
from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile

from loaderbench.datasets.photo_scenes import Scene, paint
from loaderbench.datasets.photo_statistics import PhotoRecipe, draw_recipe

_TOLERANCE = 0.02  # of the bytes
_ENCODINGS = 4
_GAINS = (0.5, 90.0)  # grey levels: below nothing is left to see, above most texture is clipped to black and white
_USUAL_SLOPE = 0.5  # d log(bytes) / d log(gain), the middle of those found
_COMMENT = b"Painted by loaderbench. These bytes stand where photographs keep EXIF data and colour profiles. "


def photo_jpeg(seed: int, index: int) -> bytes:
    """The JPEG file of photo `index` of the collection that `seed` names."""
    recipe = draw_recipe(seed, index)
    scene = paint(np.random.default_rng([seed, index]), recipe.height, recipe.width, _busy(recipe))
    return _encode_to_size(scene, recipe)


def reference_jpeg() -> bytes:
    """A photo-like JPEG of 500x375 pixels, quality 95, 4:4:4, always the same: decoding it is a known piece of work."""
    scene = paint(np.random.default_rng(0), height=375, width=500, busy=0.5)
    return _encode(scene.render(gain=20.0), 95, "4:4:4")


def _encode(image: Image.Image, quality: int, subsampling: str, metadata_bytes: int = 0) -> bytes:
    """`image` as baseline JPEG with Huffman tables made for it, as nine in ten of the measured photographs have them.

    The quantisation tables are handed over as they are, because Pillow then sets aside two bytes a pixel; with
    `quality` below 95 it sets aside one, and fails where an optimised file outgrows it.
    """
    file = io.BytesIO()
    comment = (_COMMENT * (metadata_bytes // len(_COMMENT) + 1))[:metadata_bytes]
    image.save(file, "JPEG", qtables=_tables(quality), subsampling=subsampling, optimize=True, comment=comment)
    return file.getvalue()


@lru_cache
def _tables(quality: int) -> dict[int, list[int]]:
    """The quantisation tables, luminance and chrominance, that libjpeg means by `quality`."""
    file = io.BytesIO()
    Image.new("YCbCr", (8, 8)).save(file, "JPEG", quality=quality)
    file.seek(0)
    with JpegImageFile(file) as image:
        return dict(image.quantization)


def _encode_to_size(scene: Scene, recipe: PhotoRecipe) -> bytes:
    """Secant steps in the logarithms of gain and bytes, where the curve is nearly straight."""
    wanted = math.log(recipe.bytes_per_pixel * recipe.width * recipe.height)
    log_gain, slope = _first_log_gain(scene, recipe), _USUAL_SLOPE
    before: tuple[float, float] | None = None
    data = b""
    for _ in range(_ENCODINGS):
        log_gain = min(max(log_gain, math.log(_GAINS[0])), math.log(_GAINS[1]))
        data = _encode(
            scene.render(math.exp(log_gain), grey=recipe.grey),
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
    """How much detail it takes to fill so many bytes at this quality: about 0 is a plain picture, 1.2 a busy one."""
    coarseness = math.log(np.mean(_tables(recipe.quality)[0]))
    return math.log(recipe.bytes_per_pixel) + 0.6 * coarseness + (0.4 if recipe.grey else 0.0)


def _busy(recipe: PhotoRecipe) -> float:
    return min(max(_difficulty(recipe) / 1.2, 0.0), 1.0)


def _first_log_gain(scene: Scene, recipe: PhotoRecipe) -> float:
    """A linear fit to the gains that were found for 512 photos; half of its guesses are within 10 % in bytes."""
    step = np.abs(np.diff(scene.texture[::4], axis=1))  # between neighbours, on every fourth row
    roughness = float(np.log(step + 1e-3).mean())
    halved_chroma = 0.4 if recipe.subsampling == "4:2:0" else 0.0
    return 2.5 * _difficulty(recipe) + halved_chroma - roughness
