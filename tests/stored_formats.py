"""What tests of single formats ask of each."""

from __future__ import annotations

import multiprocessing
import pickle
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from loaderbench.formats import Format, ReadEncoded, written_copy

Samples = list[tuple[str, int]]


def differing(reader: ReadEncoded, samples: Samples, numbers: list[int]) -> list[int]:
    """The samples whose bytes are not those of their files."""
    return [number for number in numbers if reader(number) != Path(samples[number][0]).read_bytes()]


def check_reads_everywhere(name: str, how: Format, samples: Samples, folder: Path) -> list[Any]:
    """What differs: read backwards here, in processes of both kinds, and in threads; or in a second copy."""
    copy = written_copy(samples, name, how, cache_dir=folder / "one")
    again = written_copy(samples, name, how, cache_dir=folder / "two")
    numbers = [*range(len(samples))][::-1]
    reader = copy.reader(how)
    found: list[Any] = [
        *differing(reader, samples, numbers),
        *differing(pickle.loads(pickle.dumps(reader)), samples, numbers),
    ]
    for kind in ("fork", "spawn"):
        with multiprocessing.get_context(kind).Pool(1) as pool:
            found += pool.apply(differing, (reader, samples, numbers))
    with ThreadPoolExecutor(3) as threads:
        for own in threads.map(differing, [reader] * 3, [samples] * 3, [numbers, numbers[::-1], numbers]):
            found += own
    return found if again.about.checksum == copy.about.checksum else [*found, "checksum"]


def check_damage_is_named(name: str, how: Format, samples: Samples, folder: Path, file: str) -> list[bool]:
    """Whether one line names a part whose file was truncated, and then deleted."""
    copy = written_copy(samples, name, how, cache_dir=folder)
    damaged, said = copy.parts[2] / file, []
    for cut in (True, False):
        damaged.write_bytes(damaged.read_bytes()[:-60]) if cut else damaged.unlink()
        with pytest.raises(OSError, match=re.escape(str(copy.parts[2]))) as raised:
            [copy.reader(how)(number) for number in range(2 * copy.part_samples, 3 * copy.part_samples)]
        said.append("\n" not in str(raised.value) and "to write the copy again" in str(raised.value))
    return said


def check_continued(name: str, how: Format, samples: Samples, folder: Path) -> bool:
    """Whether a writer that was stopped in the middle leaves parts, which the next one keeps."""

    def stop(written: int, _: int) -> None:
        if written == 11:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        written_copy(samples, name, how, cache_dir=folder, on_progress=stop)
    left = {path: path.stat().st_ino for path in folder.rglob("part-*") if path.is_dir()}
    copy = written_copy(samples, name, how, cache_dir=folder)
    kept = all(path.stat().st_ino == number for path, number in left.items())
    return bool(left) and kept and differing(copy.reader(how), samples, [*range(len(samples))]) == []
