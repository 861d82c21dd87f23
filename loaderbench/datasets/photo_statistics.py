"""Statistics of a photo collection: sizes, compression and color. Numbers only, no pixels.

The numbers were measured over a thousand photographs, one of each ImageNet class. Such a collection has two origins.
Most pictures come from one photo site, which scales the longer side to 500 pixels and saves at quality 96 without
chroma subsampling. The others come from all over the web, in any size, mostly 4:2:0 at lower quality.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

LEVELS = (0.05, 0.25, 0.50, 0.75, 0.95)
IMAGENET_QUANTILES: dict[str, tuple[float, ...]] = {
    "file_bytes": (16_035, 57_281, 107_078, 146_013, 211_890),
    "pixels": (49_239, 166_500, 187_000, 187_500, 390_936),
    "width": (240, 375, 500, 500, 700),
    "height": (200, 333, 375, 500, 572),
    "bytes_per_pixel": (0.146, 0.324, 0.575, 0.793, 1.104),
}
"""Quantiles at `LEVELS` of a thousand photographs, one of each ImageNet class: the target of generated photos."""

IMAGENET_MEAN_BYTES_PER_PIXEL = 0.543
"""Total bytes over total pixels of the same thousand photographs, so large pictures weigh more than small ones."""

GRAY_SHARE = 0.023
_GRAY_BYTES = 0.75  # fraction of a color picture's bytes; chroma takes the rest
SITE_LONG_SIDE = 500
SITE_QUALITY = 96  # its luminance table has a mean of 4.6, the most common of the thousand

# The rest was measured on a part of the thousand. (probability, value) pairs are interpolated linearly.
_BYTES_PER_PIXEL = ((0.0, 0.09), *zip(LEVELS, IMAGENET_QUANTILES["bytes_per_pixel"], strict=True), (1.0, 1.4))
_SITE_SHARE = ((0.06, 0.0), (0.19, 0.07), (0.31, 0.53), (0.44, 0.73), (0.56, 0.90), (0.69, 0.97), (0.94, 1.0))
"""Share of the photo site among pictures of a given rank in bytes per pixel: small files come from elsewhere."""
_SITE_SHORT_SIDE = (
    (0.00, 188), (0.05, 320), (0.10, 332), (0.17, 333), (0.36, 333), (0.38, 335), (0.45, 374), (0.46, 375), (0.88, 375),
    (0.95, 413), (1.00, 500),
)  # fmt: skip
_WEB_PIXELS = (
    (0.00, 12e3), (0.05, 28e3), (0.14, 52e3), (0.25, 90e3), (0.50, 150e3), (0.75, 210e3), (0.86, 380e3), (0.95, 740e3),
    (0.99, 1.6e6), (1.00, 2.5e6),
)  # fmt: skip
_WEB_ELONGATION = ((0.00, 1.00), (0.08, 1.00), (0.25, 1.25), (0.50, 1.33), (0.75, 1.49), (0.95, 1.85), (1.00, 2.40))
_WEB_QUALITY = ((0.0, 60), (0.05, 67), (0.25, 75), (0.5, 84), (0.75, 90), (0.93, 95), (1.0, 96))
_SITE_METADATA = ((0.00, 0), (0.60, 0), (0.75, 1.4e3), (0.90, 3.2e3), (0.95, 7.3e3), (1.00, 15e3))
_WEB_METADATA = ((0.00, 0), (0.75, 200), (0.90, 12e3), (0.95, 29e3), (1.00, 45e3))
_METADATA_LIMIT = 0.3  # fraction of a file's bytes
_WEB_444_SHARE = 0.25
_PORTRAIT_SHARE = 0.28
_QUALITY_FOLLOWS_BYTES = 0.6  # correlation of the normal scores, among the pictures from the web
_PIXELS_FOLLOW_BYTES = -0.38

_STEPS = np.sqrt([2.0, 11.0, 13.0, 17.0, 7.0, 19.0, 23.0, 3.0, 5.0])  # in the order that makes small sets most even

Pairs = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class PhotoRecipe:
    """Target properties of one JPEG, before it is painted."""

    width: int
    height: int
    bytes_per_pixel: float
    metadata_bytes: int
    quality: int
    subsampling: Literal["4:4:4", "4:2:0"]
    gray: bool


def draw_recipe(seed: int, index: int) -> PhotoRecipe:
    """The recipe of photo `index` in the collection of `seed`."""
    u = _spread(seed, index)
    site_share = _read(_SITE_SHARE, u[0])
    if u[1] < site_share:
        size = (SITE_LONG_SIDE, round(_read(_SITE_SHORT_SIDE, u[2])))
        quality, full_chroma, metadata = SITE_QUALITY, True, _read(_SITE_METADATA, u[8])
    else:
        rank = _web_rank(u[0])
        size = _web_size(_follow(_PIXELS_FOLLOW_BYTES, rank, u[2]), u[3])
        quality = round(_read(_WEB_QUALITY, _follow(_QUALITY_FOLLOWS_BYTES, rank, u[4])))
        full_chroma, metadata = u[5] < _WEB_444_SHARE, _read(_WEB_METADATA, u[8])
    width, height = size[::-1] if u[6] < _PORTRAIT_SHARE else size
    gray = u[7] < GRAY_SHARE
    bytes_per_pixel = _read(_BYTES_PER_PIXEL, u[0]) * (_GRAY_BYTES if gray else 1.0)
    return PhotoRecipe(
        width=width,
        height=height,
        bytes_per_pixel=bytes_per_pixel,
        metadata_bytes=int(min(metadata, _METADATA_LIMIT * bytes_per_pixel * width * height)),
        quality=quality,
        subsampling="4:4:4" if full_chroma else "4:2:0",
        gray=gray,
    )


def _spread(seed: int, index: int) -> list[float]:
    """Point `index` of a low-discrepancy sequence in the unit cube, whose start depends on `seed`.

    Its steps are square roots of primes (Richtmyer 1951; Niederreiter 1978, "Quasi-Monte Carlo methods and
    pseudo-random numbers"). A few hundred photos then have the quantiles of the tables. Independent draws would be off
    by several percent.
    """
    shift = np.random.default_rng([seed]).random(len(_STEPS))
    return [float(u) for u in (shift + index * _STEPS) % 1.0]


def _read(pairs: Pairs, u: float) -> float:
    at, values = zip(*pairs, strict=True)
    return float(np.interp(u, at, values))


def _follow(correlation: float, leader: float, u: float) -> float:
    """Map `u` to a uniform number whose normal score has this correlation with the leader's (a Gaussian copula)."""
    clipped = np.clip([leader, u], 1e-6, 1 - 1e-6)
    score = correlation * ndtri(clipped[0]) + (1 - correlation**2) ** 0.5 * ndtri(clipped[1])
    return float(ndtr(score))


@lru_cache(maxsize=1)
def _web_distribution() -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    ranks = np.linspace(0.0, 1.0, 201)
    at, share = zip(*_SITE_SHARE, strict=True)
    below = np.cumsum(1.0 - np.interp(ranks, at, share))
    return ranks, below / below[-1]


def _web_rank(rank: float) -> float:
    """Convert a rank in bytes per pixel among all pictures to the rank among pictures from the web."""
    return float(np.interp(rank, *_web_distribution()))


def _web_size(u_pixels: float, u_elongation: float) -> tuple[int, int]:
    pixels, elongation = _read(_WEB_PIXELS, u_pixels), _read(_WEB_ELONGATION, u_elongation)
    return round((pixels * elongation) ** 0.5), round((pixels / elongation) ** 0.5)
