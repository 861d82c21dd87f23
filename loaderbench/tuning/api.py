"""`loaderbench.tune(loader)`: one line at the start of a training script.

Results are kept by what they depend on: machine, data and versions.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import warnings
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from importlib.metadata import version
from math import inf
from numbers import Real
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from loaderbench.cache_folder import user_cache
from loaderbench.environment import cpus_allotted
from loaderbench.errors import UsageError
from loaderbench.loaders.worker_options import WORKER_OPTIONS, worker_setup
from loaderbench.new_files import write_whole
from loaderbench.options import within_limits
from loaderbench.ranks import ranks_of_training
from loaderbench.records import Config
from loaderbench.records.words import OUT_OF_RANGE, out_of_range
from loaderbench.stderr import say
from loaderbench.suite import parse_duration_s
from loaderbench.tracing.loader import is_loader, start_method_of, worker_arguments
from loaderbench.tuning.described import described
from loaderbench.tuning.plan import OwnLoop, TuneOrder
from loaderbench.tuning.tune import tune_loader
from loaderbench.tuning.words import asides, cautions, headline

LEAST_S = 5.0
_NO_WORKER_CALLS = "torch calls worker_init_fn in workers only: call it with 0 before training"


def tune(loader: Any, demand: float | None = None, budget: str | float = "20s") -> dict[str, Any]:
    """Measure faster arguments for a `DataLoader` and return them, as `DataLoader(dataset, ..., **tune(loader))`.

    Dataset, sampler, collate function and batch size stay the same. Trials run in forked processes for about `budget`
    (seconds, or a string such as `2m`). `demand` is the samples/s that training needs; `tune` does not look for more.
    The result is cached for this machine, data and versions, and the next call returns it immediately. It is not cached
    if other programs used CPUs that the trials lacked. If nothing was faster, a call with a larger budget measures
    again.

    Returns the current arguments, with a `RuntimeWarning`, if nothing can be tried, such as on Windows. Raises
    `UsageError` for anything but a `DataLoader`, and for an invalid demand or budget.
    """
    budget_s = checked_budget_s(budget)
    if not is_loader(loader):
        raise UsageError(f"tune() expects a DataLoader, got {type(loader).__name__}")
    if demand is not None and not (isinstance(demand, Real) and 0 < demand < inf):
        raise UsageError(f"demand must be above 0 samples/s, got {demand!r}")
    if demand is not None and out_of_range(demand):
        raise UsageError(f"demand: {OUT_OF_RANGE}")
    loader = _unwrapped(loader)
    name = f"{type(loader.dataset).__name__} loader"
    known = kept_answer(loader, demand, budget_s)
    if known is not None:
        say(f"{name}: arguments of an earlier call, kept in {kept_folder()}", *cautions(known.caveats))
        return _keywords(loader, known.arguments)
    if int(os.environ.get("WORLD_SIZE") or 1) > 1 or (ranks_of_training() or 1) > 1:
        _warn(name, "one of several ranks; tune in a single process")
        return _keywords(loader, {})
    say(f"tuning {name} for up to {budget_s:.0f} s")
    with TemporaryDirectory(prefix="loaderbench-tune-") as folder:
        own = OwnLoop(step_s_per_sample=1 / demand if demand else None)
        order = TuneOrder(name=name, budget_s=budget_s, own=own, script=Path(next(iter(sys.argv), "") or "-").resolve())
        found = tune_loader(loader, order, Path(folder) / "run")
    say(headline(name, found), *asides(found))
    if found.holds_later:
        keep_answer(loader, demand, Kept(found.arguments, budget_s, found.caveats))
    elif not found.is_decided:
        _warn(name, found.why_none)
    return _keywords(loader, found.arguments)


def _unwrapped(loader: Any) -> Any:
    """The original loader inside a loader that Accelerate has prepared."""
    inner = getattr(loader, "base_dataloader", None)
    return inner if is_loader(inner) else loader


def checked_budget_s(budget: str | float, given: str = "budget") -> float:
    """The budget in seconds.

    Raises `UsageError` for an invalid or too short duration, and for one that is not finite or out of range; `given`
    starts the message.
    """
    try:
        seconds = within_limits(float(parse_duration_s(budget)))
    except ValueError as error:
        raise UsageError(f"{given}: {error}") from None
    except TypeError:
        raise UsageError(f"{given}: expected seconds, or a duration such as 90s, got {budget!r}") from None
    except OverflowError:  # an integer larger than any float
        raise UsageError(f"{given}: {OUT_OF_RANGE}") from None
    if seconds < LEAST_S:
        raise UsageError(f"{given}: {budget} is too short to compare anything; use {LEAST_S:.0f}s or more")
    return seconds


def _keywords(loader: Any, found: Config) -> dict[str, Any]:
    """Keyword arguments for `DataLoader`, which refuses worker arguments without workers.

    The loader's own `worker_init_fn` is included, with or without additions by a fix, so the user passes it only once.
    """
    arguments: dict[str, Any] = {"num_workers": loader.num_workers, **found}
    if arguments["num_workers"]:
        arguments.setdefault("prefetch_factor", loader.prefetch_factor)
        arguments.setdefault("persistent_workers", loader.persistent_workers)
    asked_for = worker_setup(arguments, loader.worker_init_fn)
    if asked_for and not arguments["num_workers"]:
        say(_NO_WORKER_CALLS)
    setup = asked_for or loader.worker_init_fn
    for name in WORKER_OPTIONS:
        arguments.pop(name, None)
    return arguments if setup is None else {**arguments, "worker_init_fn": setup}


def _warn(name: str, why: str) -> None:
    warnings.warn(f"{name} was not tuned: {why}", RuntimeWarning, stacklevel=3)


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
