"""Code to paste that writes the files of a dataset in another format, in a folder named after these files."""

from __future__ import annotations

from textwrap import indent

_CODE = """\
import hashlib
import os
import shutil
import uuid
from pathlib import Path

{files}
digest = hashlib.sha256()
for path, label in files:
    digest.update(repr((os.path.abspath(path), label)).encode())
shards = Path(f"shards-{name}-{{digest.hexdigest()[:16]}}")  # named after paths and labels; delete it if images change
if not shards.exists():  # written once, complete or not at all
    part = Path(f"{{shards}}.{{uuid.uuid4().hex[:8]}}.part")
    part.mkdir()
    try:
{write}
        part.rename(shards)
    except OSError:
        if not shards.exists():  # otherwise, another rank was faster
            raise
    finally:
        shutil.rmtree(part, ignore_errors=True)
"""


_SHUFFLED = """\
from random import Random

files = Random(0).sample(dataset.samples, len(dataset.samples))  # or each shard would have few classes"""


def written_once(name: str, write: str, shuffle: object) -> str:
    """Code that creates the folder `shards` with the lines `write`, which write `files` to the folder `part`.

    `name` is a format. With `shuffle`, `files` are in random order, since loaders shuffle little within a shard.

    The name of the folder depends on the format and on the paths and labels of `dataset`, so no other data is read or
    overwritten.
    """
    files = _SHUFFLED if shuffle else "files = dataset.samples"
    return _CODE.format(name=name, files=files, write=indent(write.strip("\n"), " " * 8))
