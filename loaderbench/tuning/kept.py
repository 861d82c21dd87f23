"""Caches results of earlier calls, by what they depend on: machine, data and versions."""

from __future__ import annotations

import json
import platform
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from loaderbench.cache_folder import user_cache
from loaderbench.environment import cpus_allotted
from loaderbench.new_files import write_whole
from loaderbench.records import Config
from loaderbench.tracing.loader import start_method_of, worker_arguments
from loaderbench.tuning.described import described


@dataclass(frozen=True)
class Kept:
    """Arguments found within a budget, with their caveats; the current arguments, if nothing was faster."""

    arguments: Config
    budget_s: float
    caveats: tuple[str, ...] = ()


def kept_answer(loader: Any, demand: float | None, budget_s: float) -> Kept | None:
    """The cached result; `None` if there is none, if it is unreadable, or if a larger budget may find more.

    A larger budget may find a change where a smaller one found none. A change that was found stays valid.
    """
    with suppress(OSError, ValueError, TypeError):
        found = Kept(**json.loads(_file(loader, demand).read_text(encoding="utf-8")))
        found = replace(found, caveats=tuple(found.caveats))
        is_change = found.arguments != worker_arguments(loader)
        return found if isinstance(found.arguments, dict) and (is_change or found.budget_s >= budget_s) else None
    return None


def keep_answer(loader: Any, demand: float | None, found: Kept) -> None:
    """Cache the result for the next call. If the cache is not writable, the next call measures again."""
    with suppress(OSError):
        file = _file(loader, demand)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, json.dumps(asdict(found)), shared=True)


def _file(loader: Any, demand: float | None) -> Path:
    parts = (*_machine(), *_versions(), *_data(loader), worker_arguments(loader), demand)
    return kept_folder() / f"{sha256(repr(parts).encode()).hexdigest()[:32]}.json"


def kept_folder() -> Path:
    """The folder of cached results; delete it to measure again."""
    return user_cache() / "tuned"


def _machine() -> tuple[Any, ...]:
    return platform.node(), platform.machine(), cpus_allotted()


def _versions() -> tuple[str, ...]:
    return platform.python_version(), *(version(name) for name in ("loaderbench", "torch"))


def _data(loader: Any) -> tuple[Any, ...]:
    """Describe the loader's parts and how its workers start. A changed transform changes the description."""
    names = ("batch_size", "drop_last", "timeout", "in_order")
    parts = (loader.dataset, loader.sampler, loader.batch_sampler, loader.collate_fn, loader.worker_init_fn)
    plain = tuple(getattr(loader, name, None) for name in names)
    return type(loader).__qualname__, start_method_of(loader), *plain, *described(*parts)
