"""torchvision's transforms as TensorFlow operations, for `tf_data` and `tf_queue`.

Each operation takes the contents of a file and a vector of `DRAWS` uniform random numbers in [0, 1).
"""

from __future__ import annotations

import logging
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

from loaderbench.errors import BadImageError
from loaderbench.imagenet import AREA, ASPECT_RATIO, CROP, MEAN, SHORT_SIDE, STD
from loaderbench.loaders.image_files import ImageFiles

INSTALL = "uv pip install tensorflow"

TRIES = 10
"""Boxes to draw until one fits into the image, as torchvision does. If none fits, a center crop is taken."""

DRAWS = 2 * TRIES + 3
"""Area and aspect ratio of each box, the position of the one that fits, and whether to flip it."""

_ACCURATE = "INTEGER_ACCURATE"  # Pillow's inverse DCT; TensorFlow's default is faster
_PLACE_OF_ERROR = re.compile(r"\{\{.*?\}\}\s*|\s*\[\[.*?\]\]|\s*\[Op:.*", re.DOTALL)


_SETUP = """\
import torch, torchvision  # before TensorFlow: importing Triton after it ends the process
import tensorflow as tf

tf.config.set_visible_devices([], "GPU")  # leave GPUs to torch
"""
_BOX = """
def random_box(file):  # of torchvision's RandomResizedCrop; where none of ten fits, the first is cut
    sides = tf.cast(tf.io.extract_jpeg_shape(file)[:2], tf.float32)
    area = tf.reduce_prod(sides) * tf.random.uniform((10,), 0.08, 1)
    aspect = tf.exp(tf.random.uniform((10,), tf.math.log(3 / 4), tf.math.log(4 / 3)))
    sizes = tf.round(tf.sqrt(tf.stack((area / aspect, area * aspect), 1)))
    size = tf.minimum(sizes[tf.argmax(tf.reduce_all(sizes <= sides, 1))], sides)
    begin = tf.floor(tf.random.uniform((2,)) * (sides - size + 1))
    return tf.cast(tf.concat((begin, size), 0), tf.int32)
"""
_EVAL = "imagenet_eval"
_CROP_AND_FLIP = """\
    image = tf.io.decode_and_crop_jpeg(file, random_box(file), channels=3, dct_method="INTEGER_ACCURATE")
    image = tf.image.random_flip_left_right(tf.image.resize(image, (224, 224), antialias=True))
"""
_CENTER = """\
    image = tf.io.decode_jpeg(file, channels=3, dct_method="INTEGER_ACCURATE")
    sides = tf.shape(image)[:2]
    sides = 256 * sides // tf.reduce_min(sides)
    top, left = tf.unstack(tf.cast(tf.round((sides - 224) / 2), tf.int32))
    image = tf.image.crop_to_bounding_box(tf.image.resize(image, sides, antialias=True), top, left, 224, 224)
"""


def setup_code(arguments: Mapping[str, Any], *, lists_files: bool = True) -> str:
    """The head of a program: TensorFlow, the files of `dataset`, and the definitions that `load_code` needs."""
    scale = "mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)\n" if _normalizes(arguments) else ""
    files = "paths, labels = zip(*dataset.samples)\n" if lists_files else ""
    return _SETUP + scale + files + ("" if arguments.get("transform") == _EVAL else _BOX)


def load_code(arguments: Mapping[str, Any], parameters: str, file: str, label: str) -> str:
    """The code of `load`, which applies the named transform to a JPEG. `file` are the lines that read its contents."""
    name = arguments.get("transform", "imagenet_train")
    pixels = "(image / 255 - mean) / std" if _normalizes(arguments) else "tf.saturate_cast(tf.round(image), tf.uint8)"
    head = f"def load({parameters}):  # what `transform: {name}` does to a JPEG\n"
    image = _CENTER if name == _EVAL else _CROP_AND_FLIP
    return f"{head}{file}{image}    return tf.transpose({pixels}, (2, 0, 1)), {label}\n"


def code_of_files(arguments: Mapping[str, Any]) -> str:
    """Code that loads one image of a torchvision `dataset`."""
    load = load_code(arguments, "path, label", "    file = tf.io.read_file(path)\n", "label")
    return f"{setup_code(arguments)}\n{load}"


def _normalizes(arguments: Mapping[str, Any]) -> bool:
    return arguments.get("normalize") != "device"


def tensorflow() -> Any:
    """Import TensorFlow without GPUs, which torch uses. An operation computes in the thread that calls it.

    Triton is imported first: importing Triton after TensorFlow ends the process, because both bundle LLVM.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # also hides decoder errors, which are raised anyway
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")  # no log level hides its notice
    with suppress(ImportError):
        import_module("triton")
    tf = import_module("tensorflow")
    tf.config.set_visible_devices([], "GPU")
    tf.config.threading.set_intra_op_parallelism_threads(1)
    return tf


@contextmanager
def without_warnings(tf: Any) -> Iterator[None]:
    """Hide TensorFlow's warnings, such as those about deprecated functions."""
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def image_of(tf: Any, files: ImageFiles, path: Any, draws: Any) -> Any:
    """Read a file and return its image."""
    return image_of_bytes(tf, files, tf.io.read_file(path), draws)


def image_of_bytes(tf: Any, files: ImageFiles, contents: Any, draws: Any) -> Any:
    """Convert a file's contents to an image of shape (3, 224, 224): normalized float32, or uint8."""
    planes = tf.transpose(OPERATIONS[files.transform](tf, contents, draws), [2, 0, 1])
    planes.set_shape([3, CROP, CROP])
    if not files.normalizes:
        return tf.saturate_cast(tf.round(planes), tf.uint8)
    scale = [[[1 / (255 * std)]] for std in STD]
    shift = [[[-mean / std]] for mean, std in zip(MEAN, STD, strict=True)]
    return planes * scale + shift


def _train(tf: Any, contents: Any, draws: Any) -> Any:
    """Random crop, resize, flip. Only the crop of a JPEG is decoded."""

    def of_jpeg() -> Any:
        box = random_box(tf, tf.io.extract_jpeg_shape(contents)[:2], draws)
        return tf.io.decode_and_crop_jpeg(contents, box, channels=3, dct_method=_ACCURATE)

    def of_other() -> Any:
        image = _decoded(tf, contents)
        top, left, height, width = tf.unstack(random_box(tf, tf.shape(image)[:2], draws))
        return image[top : top + height, left : left + width]

    crop = tf.cond(tf.io.is_jpeg(contents), of_jpeg, of_other)
    sides = tf.shape(crop)[:2]
    image = _resized(tf, crop, CROP / tf.cast(sides, tf.float32), [0.0, 0.0])
    return tf.cond(draws[-1] < 0.5, lambda: tf.reverse(image, [1]), lambda: image)


def _eval(tf: Any, contents: Any, _draws: Any) -> Any:
    """Resize the short side and crop the center, with torchvision's rounding."""
    image = tf.cond(
        tf.io.is_jpeg(contents),
        lambda: tf.io.decode_jpeg(contents, channels=3, dct_method=_ACCURATE),
        lambda: _decoded(tf, contents),
    )
    sides = tf.shape(image)[:2]
    resized = SHORT_SIDE * sides // tf.reduce_min(sides)
    begin = tf.round(tf.cast(resized - CROP, tf.float32) / 2)
    return _resized(tf, image, tf.cast(resized / sides, tf.float32), -begin)


OPERATIONS: Mapping[str, Callable[[Any, Any, Any], Any]] = {
    "imagenet_train": _train,
    "imagenet_train_v2": _train,
    "imagenet_train_scaled": _train,
    "imagenet_train_region": _train,
    "imagenet_eval": _eval,
}
"""Functions by transform name; each returns an image of 224x224 pixels, float32 from 0 to 255."""


def random_box(tf: Any, sides: Any, draws: Any) -> Any:
    """Return top, left, height and width of a random crop of an image with these sides (height, width)."""
    sizes = tf.cast(sides, tf.float32)
    area = tf.reduce_prod(sizes) * _between(draws[:TRIES], AREA)
    aspect = tf.exp(_between(draws[TRIES : 2 * TRIES], (math.log(ASPECT_RATIO[0]), math.log(ASPECT_RATIO[1]))))
    boxes = tf.round(tf.sqrt(tf.stack([area / aspect, area * aspect], axis=1)))
    fits = tf.reduce_all((boxes > 0) & (boxes <= sizes), axis=1)
    drawn = boxes[tf.argmax(fits)]  # the first one that fits
    placed = tf.floor(draws[2 * TRIES : 2 * TRIES + 2] * (sizes - drawn + 1))
    center = _central(tf, sizes)
    box = tf.where(
        tf.reduce_any(fits), tf.concat([placed, drawn], 0), tf.concat([tf.floor((sizes - center) / 2), center], 0)
    )
    return tf.cast(box, tf.int32)


def _between(draws: Any, ends: tuple[float, float]) -> Any:
    return ends[0] + draws * (ends[1] - ends[0])


def _central(tf: Any, sizes: Any) -> Any:
    """Height and width of the largest center box with an allowed aspect ratio."""
    narrowest, widest = ASPECT_RATIO
    return tf.minimum(sizes, tf.round(tf.stack([sizes[1] / narrowest, sizes[0] * widest])))


def _resized(tf: Any, image: Any, scale: Any, translation: Any) -> Any:
    """Scale, translate and crop to 224x224 pixels, with Pillow's antialiased bilinear filter."""
    return tf.raw_ops.ScaleAndTranslate(
        images=image[None],
        size=[CROP, CROP],
        scale=scale,
        translation=translation,
        kernel_type="triangle",
        antialias=True,
    )[0]


def _decoded(tf: Any, contents: Any) -> Any:
    """Decode the first frame of any format that TensorFlow supports, as RGB."""
    image = tf.io.decode_image(contents, channels=3, expand_animations=False)
    image.set_shape([None, None, 3])
    return image


def named(tf: Any, error: Any, paths: Iterable[str]) -> Exception:
    """The error for the first of these files that TensorFlow cannot read or decode; the same error if there is none.

    The exception is new in both cases, because frames of the old one would keep the loader alive.
    """
    for path in paths:
        try:
            _decoded(tf, tf.io.read_file(path))
        except tf.errors.OpError as found:
            return BadImageError(f"{path}: {type(found).__name__}: {_PLACE_OF_ERROR.sub('', found.message).strip()}")
    same: Exception = type(error)(None, None, error.message)
    return same
