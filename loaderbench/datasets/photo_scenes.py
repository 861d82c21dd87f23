"""Paint landscapes: a sky, ridges in haze, sometimes a lake, and texture of uneven strength.

Two properties of photographs determine the cost of JPEG decoding, and both are reproduced here. The amplitude spectrum
falls as a power of the spatial frequency. Contrast is uneven, because objects occlude each other and plain sky adjoins
busy ground. Images are painted in YCbCr, which avoids a conversion at each encoding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.fft
from PIL import Image

_PALETTES = (  # RGB of: zenith, haze at the horizon, far slopes, and the two alternating grounds nearby
    ((70, 120, 190), (200, 215, 230), (120, 140, 150), (70, 95, 45), (150, 135, 90)),  # noon
    ((60, 60, 110), (245, 170, 110), (110, 80, 100), (50, 40, 45), (95, 65, 55)),  # dusk
    ((90, 140, 200), (225, 215, 200), (190, 140, 105), (180, 115, 70), (215, 175, 125)),  # desert
    ((140, 165, 195), (220, 222, 220), (125, 120, 115), (110, 75, 35), (190, 120, 40)),  # autumn
    ((90, 125, 175), (215, 225, 235), (150, 165, 185), (205, 212, 222), (85, 90, 100)),  # snow
    ((165, 180, 190), (205, 212, 212), (95, 115, 110), (35, 60, 35), (90, 110, 55)),  # forest
    ((80, 130, 190), (210, 225, 235), (90, 110, 120), (40, 75, 80), (95, 125, 100)),  # coast
)
_RGB_TO_YCC = np.array([[0.299, 0.587, 0.114], [-0.168736, -0.331264, 0.5], [0.5, -0.418688, -0.081312]])  # JFIF
_WHITE = np.array([240.0, 128.0, 128.0], np.float32)
_COARSE = 2  # colors are painted at half size and enlarged: only the texture needs every pixel


@dataclass(frozen=True)
class Scene:
    """A picture without its texture, and the texture, whose strength determines the size of the JPEG."""

    colors: Plane
    texture: Plane
    tint: tuple[float, float]
    """How much the texture changes Cb and Cr per unit of luminance."""

    def render(self, gain: float, *, gray: bool = False) -> Image.Image:
        """Render the picture with a texture of `gain` gray levels (standard deviation at a local contrast of 1)."""
        weights = (1.0,) if gray else (1.0, *self.tint)
        planes = [
            np.clip(color + np.float32(gain * weight) * self.texture, 0.0, 255.0).astype(np.uint8)
            for color, weight in zip(self.colors, weights, strict=False)
        ]
        images = [Image.fromarray(plane) for plane in planes]
        return images[0] if gray else Image.merge("YCbCr", images)


def paint(rng: np.random.Generator, height: int, width: int, busy: float) -> Scene:
    """Paint a landscape of this size in pixels. A busier one (0 to 1) has less sky and finer texture."""
    colors, contrast = _landscape(rng, -(-height // _COARSE), -(-width // _COARSE), busy)
    enlarged = np.stack([resize(plane, height, width) for plane in (*colors, contrast)])
    texture = power_law_field(
        rng,
        height,
        width,
        exponent=1.35 - 0.6 * busy + rng.uniform(-0.1, 0.1),
        corner=0.012 * 8 ** (busy + rng.uniform(-0.1, 0.1)),
        light=rng.uniform(0.0, 2 * math.pi) if rng.random() < 0.5 else None,
    )
    texture *= enlarged[3]
    warmth, share = (
        rng.normal(0.0, 0.6),
        rng.uniform(0.2, 0.45),
    )  # lit areas are yellow, sometimes green or red; shade is blue
    return Scene(enlarged[:3], texture, tint=(-share * math.cos(warmth), share * math.sin(warmth)))


def _landscape(rng: np.random.Generator, height: int, width: int, busy: float) -> tuple[Plane, Plane]:
    """Return the three color planes, and the local contrast of the texture: 1 in the foreground, a tenth in the sky."""
    zenith, haze, *ground = (color[:, None, None] for color in _palette(rng))
    soft = soft_field(rng, height, width, exponent=1.8, scale=8)
    spots = soft_field(rng, height, width, exponent=1.3, scale=3)
    sky = rng.random() > 0.1 + 0.5 * busy
    horizon = rng.uniform(0.2, 0.8 - 0.4 * busy) if sky else rng.uniform(-0.3, 0.0)
    colors, contrast = _sky(rng, soft, horizon, zenith, haze)
    contrast += np.float32(0.12 * busy)
    layers = int(rng.integers(2, 6))
    down = np.linspace(0.0, 1.0, height, dtype=np.float32)[:, None]
    for layer in range(layers):
        near = (layer + 1) / layers
        top = horizon + (1.05 - horizon) * (layer / layers) ** 1.4
        ridge = top + rng.uniform(0.04, 0.1) * (1.0 - 0.5 * near) * ridge_line(rng, width)
        mask = smooth_step((down - ridge) * np.float32(height / 1.5) + 0.5)
        patches = mirrored(spots, layer)
        slope = _slope(rng, mirrored(soft, layer + 1), patches, ground[1:])
        colors = blend(colors, blend(slope, (haze + ground[0]) / 2, 0.95 * (1.0 - near)), mask)
        strength = np.float32(near + (1.0 - near) * (0.2 + 0.3 * busy))
        contrast = blend(contrast, strength * np.exp(np.float32(0.6 - 0.3 * busy) * patches), mask)
    if sky and rng.random() < 0.2:
        _flood(colors, contrast, shore=int(height * rng.uniform(0.6, 0.85)), water=zenith)
    return colors, contrast


def _palette(rng: np.random.Generator) -> Plane:
    rgb = np.array(_PALETTES[rng.integers(len(_PALETTES))])
    ycc = rgb @ _RGB_TO_YCC.T + np.array([0.0, 128.0, 128.0])
    palette: Plane = (ycc + rng.normal(0.0, 5.0, ycc.shape)).astype(np.float32)
    return palette


def _sky(rng: np.random.Generator, soft: Plane, horizon: float, zenith: Plane, haze: Plane) -> tuple[Plane, Plane]:
    down = np.linspace(0.0, 1.0, len(soft), dtype=np.float32)[:, None]
    clear = blend(zenith, haze, np.clip(down / np.float32(max(horizon, 0.2)), 0.0, 1.0))
    cover = smooth_step((soft - np.float32(rng.uniform(-0.5, 1.5))) / np.float32(rng.uniform(0.6, 2.5)))
    clouds = cover * np.float32(rng.uniform(0.2, 0.8))
    contrast: Plane = np.float32(0.06) + np.float32(0.4) * clouds * (1.0 - clouds)
    return blend(clear, blend(_WHITE[:, None, None], haze, 0.3), clouds), contrast


def _slope(rng: np.random.Generator, light: Plane, patches: Plane, grounds: list[Plane]) -> Plane:
    """Two grounds in patches with soft borders, in uneven light."""
    which = smooth_step(np.float32(rng.uniform(0.4, 1.5)) * patches + np.float32(rng.uniform(0.0, 1.0)))
    slope = blend(grounds[0], grounds[1], which)
    slope[0] *= 1.0 + np.float32(0.22) * light
    return slope


def _flood(colors: Plane, contrast: Plane, shore: int, water: Plane) -> None:
    """Add a lake below row `shore`, in place: calm, and mirroring the scene above it."""
    rows = colors.shape[1] - shore
    colors[:, shore:] = blend(colors[:, shore - rows : shore][:, ::-1], water, 0.3)
    contrast[shore:] *= 0.4


Plane = npt.NDArray[np.float32]
"""Shape (height, width), or (3, height, width) for the three planes of a picture."""


def power_law_field(
    rng: np.random.Generator, height: int, width: int, *, exponent: float, corner: float, light: float | None = None
) -> Plane:
    """A random field of unit variance whose amplitude is 1/f^exponent above `corner` (cycles per pixel), flat below it.

    Natural images have an exponent near 1 (Field 1987, "Relations between the statistics of natural images and the
    response properties of cortical cells"; Torralba & Oliva 2003, "Statistics of natural image categories"). With
    `light`, an angle in radians, the field is the slope in that direction, like rough ground lit from there.
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
    """A `power_law_field` without detail finer than `scale` pixels."""
    rows, columns = height // scale + 4, width // scale + 4
    field = power_law_field(rng, rows, columns, exponent=exponent, corner=0.5 / max(rows, columns))
    return resize(field, height, width)


def ridge_line(rng: np.random.Generator, width: int) -> Plane:
    """The outline of a ridge: one height per column, unit variance. Half of a fractal line, so its ends differ."""
    frequency = np.maximum(np.arange(width + 1), 2.0)
    noise = rng.standard_normal(2 * frequency.size).view(np.complex128) * frequency ** -rng.uniform(1.1, 1.7)
    noise[0] = 0.0
    line: Plane = scipy.fft.irfft(noise)[:width].astype(np.float32)
    line /= line.std()
    return line


def mirrored(field: Plane, how: int) -> Plane:
    """One of the four mirror images, so one field can be used several times without looking the same."""
    return field[:: -1 if how & 1 else 1, :: -1 if how & 2 else 1]


def smooth_step(x: Plane) -> Plane:
    """Rise smoothly from 0 to 1 while `x` rises from 0 to 1."""
    t = np.clip(x, 0.0, 1.0)
    return t * t * (3.0 - 2.0 * t)


def blend(below: Plane, above: Plane, opacity: Plane | float) -> Plane:
    """Lay `above` over `below`."""
    return below + (above - below) * opacity


def resize(plane: Plane, height: int, width: int) -> Plane:
    """Resize with bicubic interpolation; releases the GIL, and is many times faster than `scipy.ndimage.zoom`."""
    image = Image.fromarray(np.ascontiguousarray(plane, np.float32))
    return np.asarray(image.resize((width, height), Image.Resampling.BICUBIC))
