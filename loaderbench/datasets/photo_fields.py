"""Random fields with the spectrum of photographs, and the few operations on planes that painting needs."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import scipy.fft
from PIL import Image

Plane = npt.NDArray[np.float32]
"""Height by width, or (3, height, width) for the three planes of a picture."""


def power_law_field(
    rng: np.random.Generator, height: int, width: int, *, exponent: float, corner: float, light: float | None = None
) -> Plane:
    """A random field of unit variance whose amplitude is 1/f^exponent above `corner` (cycles per pixel), flat below it.

    Natural images have an exponent near 1 (Field 1987, "Relations between the statistics of natural images and the
    response properties of cortical cells"; Torralba & Oliva 2003, "Statistics of natural image categories"). With
    `light`, an angle in radians, the field is the slope towards it: rough ground that is lit from there.
    """
    rows, columns = (int(scipy.fft.next_fast_len(n, real=True)) for n in (height, width))
    fy = np.fft.fftfreq(rows).astype(np.float32)[:, None]
    fx = np.fft.rfftfreq(columns).astype(np.float32)
    square = fx * fx + fy * fy
    amplitude = (square + np.float32(corner**2)) ** np.float32(-exponent / 2)
    if light is not None:
        amplitude *= (np.float32(math.cos(light)) * fx + np.float32(math.sin(light)) * fy) / np.sqrt(square + 1e-9)
    noise = rng.standard_normal((rows, 2 * fx.size), dtype=np.float32).view(np.complex64)
    noise *= amplitude
    noise[0, 0] = 0.0
    field: Plane = scipy.fft.irfft2(noise, s=(rows, columns))[:height, :width]
    field /= field.std()
    return field


def soft_field(rng: np.random.Generator, height: int, width: int, *, exponent: float, scale: int) -> Plane:
    """The same without detail finer than `scale` pixels."""
    rows, columns = height // scale + 4, width // scale + 4
    field = power_law_field(rng, rows, columns, exponent=exponent, corner=0.5 / max(rows, columns))
    return resize(field, height, width)


def ridge_line(rng: np.random.Generator, width: int) -> Plane:
    """The outline of a ridge, unit variance, one height per column: half of a fractal line, lest its ends meet."""
    frequency = np.maximum(np.arange(width + 1), 2.0)
    noise = rng.standard_normal(2 * frequency.size).view(np.complex128) * frequency ** -rng.uniform(1.1, 1.7)
    noise[0] = 0.0
    line: Plane = scipy.fft.irfft(noise)[:width].astype(np.float32)
    line /= line.std()
    return line


def mirrored(field: Plane, how: int) -> Plane:
    """One of the four mirror images: a field serves several times without looking the same."""
    return field[:: -1 if how & 1 else 1, :: -1 if how & 2 else 1]


def smooth_step(x: Plane) -> Plane:
    """From 0 to 1 without corners while `x` goes from 0 to 1."""
    t = np.clip(x, 0.0, 1.0)
    return t * t * (3.0 - 2.0 * t)


def blend(below: Plane, above: Plane, opacity: Plane | float) -> Plane:
    """`above` laid over `below`."""
    return below + (above - below) * opacity


def resize(plane: Plane, height: int, width: int) -> Plane:
    """Bicubic; outside the interpreter lock, and many times faster than `scipy.ndimage.zoom`."""
    image = Image.fromarray(np.ascontiguousarray(plane, np.float32))
    return np.asarray(image.resize((width, height), Image.Resampling.BICUBIC))
