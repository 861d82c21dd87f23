"""Files that scenarios read: real JPEGs, small and large, and raw ones. Made once, in the user's temporary folder."""

from __future__ import annotations

import getpass
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from loaderbench.datasets.photos import cached_photos

ROW_GROUPS = 8

ROOT = Path(tempfile.gettempdir()) / f"loaderbench-diagnosis-{getpass.getuser()}"


def photos() -> Path:
    """240 photo-like JPEGs of about 500 x 375, one folder per class."""
    return cached_photos(images=240)


def photo_paths() -> list[str]:
    return sorted(str(path) for path in photos().rglob("*.jpg"))


def large_photos(side: tuple[int, int] = (4000, 3000), count: int = 6) -> Path:
    """Photos of 12 megapixels: the small ones, upscaled."""
    return _once(f"photos-{side[0]}x{side[1]}-{count}", lambda folder: _upscale(folder / "class_00", side, count))


def presized_photos(side: tuple[int, int] = (256, 192), count: int = 240) -> Path:
    """The photos as `presize_offline` would leave them."""
    return _once(f"photos-{side[0]}x{side[1]}-{count}", lambda folder: _upscale(folder / "class_00", side, count))


def raw_files(count: int = 24, size: int = 8 << 20) -> list[str]:
    """Files of random bytes, as of raw tensors; one block is repeated, since nothing here compresses."""
    folder = _once(f"raw-{count}x{size}", lambda folder: _write(folder, [size] * count))
    return sorted(str(path) for path in folder.iterdir())


def uneven_files(count: int = 60) -> list[str]:
    """Files from 8 to 1,000 KB, to separate costs per byte from costs per file."""
    sizes = [8_000 * (1 + (37 * index) % 125) for index in range(count)]
    folder = _once(f"uneven-{count}", lambda folder: _write(folder, sizes))
    return sorted(str(path) for path in folder.iterdir())


def parquet_file(rows: int, columns: int) -> Path:
    """`ROW_GROUPS` row groups with columns of text, which take long to decompress."""
    return _once(f"rows-{rows}x{columns}", lambda folder: _write_rows(folder, rows, columns)) / "rows.parquet"


def _once(name: str, make: Callable[[Path], None]) -> Path:
    """The folder, which appears complete or not at all."""
    folder = ROOT / name
    if not folder.exists():
        unfinished = ROOT / f".{name}.{secrets.token_hex(4)}"
        unfinished.mkdir(parents=True)
        try:
            make(unfinished)
            unfinished.rename(folder)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def _upscale(folder: Path, side: tuple[int, int], count: int) -> None:
    folder.mkdir()
    for index, path in enumerate(photo_paths()[:count]):
        with Image.open(path) as image:
            image.convert("RGB").resize(side, Image.Resampling.BICUBIC).save(folder / f"{index:03d}.jpg", quality=88)


def _write_rows(folder: Path, rows: int, columns: int) -> None:
    words = np.random.default_rng(0).integers(0, 1 << 24, rows * ROW_GROUPS).astype(str)
    table = pa.table({f"text_{number}": words for number in range(columns)})
    pq.write_table(table, folder / "rows.parquet", row_group_size=rows, compression="zstd", use_dictionary=False)


def _write(folder: Path, sizes: list[int]) -> None:
    for index, size in enumerate(sizes):
        (folder / f"{index:03d}.bin").write_bytes(os.urandom(1 << 20) * (size >> 20) + os.urandom(size % (1 << 20)))
