"""A dataset's files, written once in another format."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class FormatCopy:
    """A complete copy of `samples` files, which hold `source_bytes`.

    It has `files` with `stored_bytes`, and took `write_s` to write, over all runs that wrote a part of it. `checksum`
    is BLAKE2b over the names and the bytes of its files.
    """

    format: str
    samples: int
    source_bytes: int
    files: int
    stored_bytes: int
    write_s: float
    checksum: str
