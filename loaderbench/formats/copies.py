"""Copies of a dataset's files in another format, kept in the user's cache.

A copy is written in parts. A part is renamed to its final name once it is complete, so an interrupted writer continues
with the next part. Only a copy with all its parts has `copy.json`; a copy without that file is never read.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from loaderbench.cache_folder import user_cache
from loaderbench.errors import MissingError
from loaderbench.formats.format import Format, Item, ReadEncoded
from loaderbench.new_files import hold, write_whole
from loaderbench.records import FormatCopy, in_bytes

PART_BYTES = 64 << 20
"""Target size of a part, the same as in most writers of shards."""

LEAST_PARTS = 16
"""Minimum number of parts of a copy with enough samples, for loaders whose workers read complete parts."""

_ABOUT, _LOCK, _UNFINISHED, _SECONDS = "copy.json", "lock", ".unfinished", ".json"
_LAYOUT = 1  # changing the version invalidates existing copies
_WAIT_S = 0.2
_CHUNK_BYTES = 1 << 20

Progress = Callable[[int, int], None]
"""Called with the number of samples written, and the total."""


@dataclass(frozen=True)
class StoredCopy:
    """A complete copy in its folder. All parts but the last have `part_samples` samples.

    `store` is the address of the same files in an object store, for loaders that read from there.
    """

    folder: Path
    about: FormatCopy
    part_samples: int
    store: str | None = None

    @property
    def parts(self) -> list[Path]:
        """The folder of each part, in the order of the samples."""
        return [_part(self.folder, number) for number in range(-(-self.about.samples // self.part_samples))]

    @property
    def part_sizes(self) -> list[int]:
        """The number of samples in each part."""
        count = self.about.samples
        return [min(self.part_samples, count - begin) for begin in range(0, count, self.part_samples)]

    @property
    def files(self) -> list[Path]:
        """All files that a loader can read."""
        return _stored_files(self.folder)

    def reader(self, how: Format) -> ReadEncoded:
        """Return a reader of samples by number."""
        return how.reader(self.parts, self.part_samples)


@dataclass(frozen=True)
class _Source:
    """The files to copy, and their sizes."""

    samples: Sequence[tuple[str, int]]
    sizes: Sequence[int]
    key: str


def written_copy(
    samples: Sequence[tuple[str, int]],
    name: str,
    how: Format,
    *,
    cache_dir: Path | None = None,
    on_progress: Progress | None = None,
) -> StoredCopy:
    """Find the copy of these files, or write it.

    Waits while another run writes the same copy. Raises `MissingError` for an unreadable file, and for a full disk.
    """
    source = _source(samples)
    folder = copies_of(name, cache_dir) / source.key
    if found := _find_complete(folder):
        return found
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder):
            return _find_complete(folder) or _write_copy(source, name, how, folder, on_progress)
    except OSError as error:
        raise MissingError(f"format {name}: {_why_not_written(error, folder, source)}") from error


def copies_of(name: str, cache_dir: Path | None = None) -> Path:
    """Return the folder with all copies in a format."""
    return (cache_dir or user_cache()) / "formats" / name


def _why_not_written(error: OSError, folder: Path, source: _Source) -> str:
    """Why a copy could not be written."""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return f"cannot write to {folder}: {error.strerror or error}; set LOADERBENCH_CACHE to another folder"
    return (
        f"no room in {folder} for a copy of {in_bytes(sum(source.sizes))}; "
        "free some, or set LOADERBENCH_CACHE to a folder on a larger disk"
    )


def _source(samples: Sequence[tuple[str, int]]) -> _Source:
    sizes, state = [], hashlib.blake2b(str(_LAYOUT).encode(), digest_size=16)
    for path, label in samples:
        try:
            found = Path(path).stat()
        except OSError as error:
            raise MissingError(f"{path}: cannot read: {error.strerror or error}") from None
        sizes.append(found.st_size)
        named = f"{os.path.abspath(path)}\0{found.st_size}\0{found.st_mtime_ns}\0{label}\n"  # noqa: PTH100 - many
        state.update(named.encode("utf-8", "surrogateescape"))
    return _Source(samples, sizes, state.hexdigest())


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock; wait while another process writes to the folder."""
    with (folder / _LOCK).open("w") as file:
        while hold(file) is False:
            time.sleep(_WAIT_S)
        yield


def _find_complete(folder: Path) -> StoredCopy | None:
    """The copy in a folder; `None` if there is none, or if the size of its files has changed."""
    try:
        found = json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
        copy = StoredCopy(folder, FormatCopy(**found["about"]), int(found["part_samples"]))
        stored = sum(file.stat().st_size for file in copy.files)
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return copy if stored == copy.about.stored_bytes and all(part.is_dir() for part in copy.parts) else None


def _write_copy(source: _Source, name: str, how: Format, folder: Path, on_progress: Progress | None) -> StoredCopy:
    _discard_damaged(folder)
    count, size = len(source.samples), _part_samples(source, how)
    starts = range(0, count, size)
    parts = [_part(folder, number) for number in range(len(starts))]
    left_bytes = sum(
        sum(source.sizes[start : start + size]) for start, part in zip(starts, parts, strict=True) if not part.is_dir()
    )
    _check_room(folder, left_bytes)
    for start, part in zip(starts, parts, strict=True):
        if not part.is_dir():
            _write_part(how, _items(source.samples, range(start, min(start + size, count)), on_progress), part)
    how.finish(folder, parts)
    files = _stored_files(folder)
    about = FormatCopy(
        format=name,
        samples=count,
        source_bytes=sum(source.sizes),
        files=len(files),
        stored_bytes=sum(file.stat().st_size for file in files),
        write_s=sum(json.loads(part.with_suffix(_SECONDS).read_text(encoding="utf-8")) for part in parts),
        checksum=_checksum(folder, files),
    )
    write_whole(folder / _ABOUT, json.dumps({"about": asdict(about), "part_samples": size}), sync=True)
    return StoredCopy(folder, about, size)


def _part_samples(source: _Source, how: Format) -> int:
    count = len(source.samples)
    parts = max(-(-sum(source.sizes) // PART_BYTES), LEAST_PARTS)
    if how.most_parts is not None and how.most_parts < parts:
        return -(-count // how.most_parts)
    return max(1, count // parts)


def _discard_damaged(folder: Path) -> None:
    """Delete the parts of a formerly complete copy, since it is unknown which of them are damaged."""
    if (folder / _ABOUT).exists():
        (folder / _ABOUT).unlink()
        for part in (found for found in folder.glob("part-*") if found.is_dir()):
            shutil.rmtree(part)


def _check_room(folder: Path, needed_bytes: int) -> None:
    """Raise the `OSError` of a full disk before the disk is full."""
    if shutil.disk_usage(folder).free < needed_bytes:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _items(samples: Sequence[tuple[str, int]], numbers: range, on_progress: Progress | None) -> Iterator[Item]:
    for number in numbers:
        path, label = samples[number]
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise MissingError(f"{path}: cannot read: {error.strerror or error}") from None
        yield Item(f"{number:09d}", Path(path).suffix.lower(), label, data)
        if on_progress is not None:
            on_progress(number + 1, len(samples))


def _write_part(how: Format, items: Iterator[Item], part: Path) -> None:
    """Write a part under a temporary name, and rename it once it is on disk."""
    unfinished = part.with_suffix(_UNFINISHED)
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    began_s = time.perf_counter()
    try:
        how.write_part(items, unfinished)
        for file in _all_files(unfinished):
            with file.open("rb") as written:
                os.fsync(written.fileno())
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    write_whole(part.with_suffix(_SECONDS), json.dumps(time.perf_counter() - began_s), sync=True)
    unfinished.rename(part)


def _part(folder: Path, number: int) -> Path:
    return folder / f"part-{number:05d}"


def _stored_files(folder: Path) -> list[Path]:
    """Files of all parts and of the copy itself, without loaderbench's own notes."""
    notes = {_ABOUT, _LOCK}
    return [
        file
        for file in _all_files(folder)
        if file.parent != folder or not (file.name in notes or file.name.startswith("part-"))
    ]


def _all_files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file())


def _checksum(folder: Path, files: Sequence[Path]) -> str:
    found = hashlib.blake2b(digest_size=16)
    for file in files:
        found.update(f"{file.relative_to(folder).as_posix()}\0{file.stat().st_size}\0".encode())
        with file.open("rb") as stored:
            while chunk := stored.read(_CHUNK_BYTES):
                found.update(chunk)
    return found.hexdigest()
