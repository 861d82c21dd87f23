"""Answers of earlier calls, by what they depend on: machine, data and versions."""

from __future__ import annotations

import inspect
import json
import platform
import re
from contextlib import suppress
from hashlib import sha256
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

from loaderbench.cache_folder import user_cache
from loaderbench.environment import cpus_allotted
from loaderbench.records import Config
from loaderbench.tracing.loader import worker_arguments

LEVELS, MOST_OF_ONE, MOST_WORDS = 4, 50, 2_000
_PLAIN = (str, bytes, int, float, complex, type(None))
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def kept_answer(loader: Any, demand: float | None) -> Config | None:
    """The arguments that were found before; `None` where there are none, or they cannot be read."""
    with suppress(OSError, ValueError):
        found = json.loads(_file(loader, demand).read_text(encoding="utf-8"))
        if isinstance(found, dict):
            return found
    return None


def keep_answer(loader: Any, demand: float | None, found: Config) -> None:
    """Keep it for the next call; where the cache cannot be written to, that call measures again."""
    with suppress(OSError):
        file = _file(loader, demand)
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part")
        part.write_text(json.dumps(found), encoding="utf-8")
        part.replace(file)


def _file(loader: Any, demand: float | None) -> Path:
    parts = (*_machine(), *_versions(), *_data(loader), worker_arguments(loader), demand)
    return kept_folder() / f"{sha256(repr(parts).encode()).hexdigest()[:32]}.json"


def kept_folder() -> Path:
    """Where answers are kept; delete it to measure again."""
    return user_cache() / "tuned"


def _machine() -> tuple[Any, ...]:
    return platform.node(), platform.machine(), cpus_allotted()


def _versions() -> tuple[str, ...]:
    return platform.python_version(), *(version(name) for name in ("loaderbench", "torch"))


def _data(loader: Any) -> tuple[Any, ...]:
    """The loader's parts by their description, length, values and code: a changed transform is another answer."""
    parts = (loader.dataset, loader.sampler, loader.collate_fn, loader.worker_init_fn)
    return loader.batch_size, loader.drop_last, *(_described(part, LEVELS) for part in parts)


def _described(part: Any, levels: int) -> Any:
    """What it is and holds, some levels down: of a `Subset`, its dataset."""
    if isinstance(part, _PLAIN) or levels == 0:
        return part if isinstance(part, _PLAIN) else type(part).__qualname__
    length, words = None, ""
    with suppress(Exception):  # the user's own `__len__` and `__repr__`, which may raise anything
        length = len(part)
    with suppress(Exception):
        words = _ADDRESS.sub("", repr(part))[:MOST_WORDS]
    if isinstance(part, list | tuple | set | frozenset | dict):
        held = part.values() if isinstance(part, dict) else part
        return type(part).__qualname__, length, [_described(one, levels - 1) for one in islice(held, MOST_OF_ONE)]
    own = getattr(part, "__dict__", {})
    values = [(name, _described(value, levels - 1)) for name, value in sorted(own.items())]
    return type(part).__qualname__, length, words, values, _code(part)


def _code(part: Any) -> str:
    """A digest of the file that defines it; empty where there is none."""
    with suppress(OSError, TypeError):
        file = inspect.getsourcefile(part if inspect.isroutine(part) else type(part))
        if file:
            return sha256(Path(file).read_bytes()).hexdigest()
    return ""
