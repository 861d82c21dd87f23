"""Wording of a fix: its title, rates, gain, costs and changed pixels, and why it is not recommended."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from loaderbench.loaders import backend_of, worker_count
from loaderbench.records import (
    IDENTICAL,
    Config,
    Configuration,
    Interval,
    PixelChange,
    Recommendation,
    Scalar,
    Standing,
    Tried,
    Verification,
)
from loaderbench.statistics.intervals import excludes_one, times
from loaderbench.statistics.judging import SMALL

TITLE_LIMIT, COMBINED_LIMIT = 60, 90
"""Maximum length in characters. One fix shares a terminal line with its gain; a combination has a line to itself."""

NO_GAIN = f"No gain above {(SMALL - 1) * 100:.0f}%"


def why_not(ratio: Interval, longer: str) -> tuple[Standing, str]:
    """Why a change is not recommended: slower, hardly faster, or undecided; `longer` says how to measure longer."""
    if excludes_one(ratio) and ratio.est < 1:
        return "already_ok", f"Slower: {times(ratio)}"
    if ratio.hi is not None and ratio.hi <= SMALL:
        return "already_ok", f"{NO_GAIN}: {times(ratio)}"
    why = "from a single round" if ratio.hi is None else "includes both a gain and a loss"
    return "not_checked", f"Undecided: {times(ratio)} {why}. Try {longer} or a quieter machine"


def argument(axis: str, value: Scalar) -> str:
    """`pin_memory=True`: an argument as Python code, for a title that says what to type."""
    return f"{axis}={value}"


def applied(changes: Sequence[str], shorter: Sequence[str] = ()) -> str:
    """`Apply num_workers=2 + normalize on the GPU`, or the shorter names, `Apply num_workers=2 + normalize=device`.

    If neither fits in `COMBINED_LIMIT`, the first changes are named and the others are counted.
    """
    parts = ([*changes[:shown], f"{len(changes) - shown} more"] for shown in range(len(changes) - 1, 0, -1))
    named = (changes, shorter, *parts, [f"{len(changes)} changes"])
    titles = [f"Apply {' + '.join(names)}" for names in named if names]
    return next(title for title in titles if len(title) <= COMBINED_LIMIT)


def phrase(title: str) -> str:
    """A title as one part of a combination: `num_workers=2`, `normalize on the GPU`."""
    short = title.partition(" (")[0]
    return short.removeprefix("Set ") if short.startswith("Set ") else short[:1].lower() + short[1:]


def retitled(title: str, advised: Config, tried: Config) -> str:
    """The title with the tried values: `Set num_workers=4` if four workers were tried.

    It also replaces names such as the decoder in `Decode JPEGs with simplejpeg`. The machine that shows the run may
    advise another decoder than the one that was tried.
    """
    for axis, value in tried.items():
        phrases = argument(axis, value).replace("\\", r"\\")
        title = re.sub(rf"\b{re.escape(axis)}=[^\s,;)]+", phrases, title)
        other = advised.get(axis)
        if isinstance(other, str) and isinstance(value, str) and other != value:
            title = re.sub(rf"\b{re.escape(other)}\b", value.replace("\\", r"\\"), title)
    return title


def evidence(label: str, found: Configuration) -> str:
    """The rate of one configuration, with its interval."""
    return f"{label}: {_rate(found.samples_per_s)}"


def _rate(interval: Interval | None) -> str:
    if interval is None:
        return "not measured"
    spread = "" if interval.lo is None else f" ({interval.lo:,.0f}\N{EN DASH}{interval.hi:,.0f})"
    return f"{interval.est:,.0f}{spread} samples/s"


_MEMORY = (
    ("gpu_memory_used_bytes", "GPU memory"),
    ("pss_bytes", "RAM"),
    ("shm_peak_bytes", "shared memory"),
)
_MIB = 1 << 20
_CPU_POINTS = 5


def costs(before: Configuration, after: Configuration, loader: Config) -> tuple[str, ...]:
    """Resources that `after` needs more of: worker processes, memory, CPU time. `loader` are the fixed arguments."""
    return _differences(before, after, loader, many="more", much="more")


def savings(before: Configuration, after: Configuration, loader: Config) -> tuple[str, ...]:
    """Resources that `after` needs less of."""
    return _differences(after, before, loader, many="fewer", much="less")


def _differences(less: Configuration, more: Configuration, loader: Config, *, many: str, much: str) -> tuple[str, ...]:
    phrases = []
    workers = (worker_count(more.config, loader) or 0) - (worker_count(less.config, loader) or 0)
    if workers > 0:
        in_threads = "threads" in backend_of({**loader, **more.config}).loading_in(1, more.config)
        names = ("thread", "threads") if in_threads else ("worker process", "worker processes")
        phrases.append(f"{workers} {many} {names[workers > 1]}")
    for name, label in _MEMORY:
        low, high = getattr(less, name), getattr(more, name)
        if low is not None and high is not None and high - low > _MIB:
            phrases.append(f"{(high - low) / _MIB:,.0f} MiB {much} {label}")
    if less.cpu_percent_of_allotted is not None and more.cpu_percent_of_allotted is not None:
        points = more.cpu_percent_of_allotted - less.cpu_percent_of_allotted
        if points >= _CPU_POINTS:
            phrases.append(f"{points:.0f} percentage points {much} CPU use")
    return tuple(phrases)


NOT_COMPARED = PixelChange(None, "not compared: the fix was not tried")
"""The pixel change of an untried fix that is known to change pixels."""


def pixels_of(known: PixelChange | None, found: Tried | Verification) -> PixelChange | None:
    """The measured pixel change, or the reason why a known change was not measured; `None` if no pixels change."""
    why_not = found.not_measured.get("psnr_db", "")
    if found.psnr_db is not None:
        return PixelChange(found.psnr_db)
    if known is None or why_not == IDENTICAL.why_not:
        return None
    return PixelChange(None, why_not or "not compared in this run")


def with_pixel_cost(advice: Recommendation) -> Recommendation:
    """Add `Changes pixels: PSNR 34 dB` to the costs of a recommendation that changes pixels."""
    if advice.pixels is None:
        return advice
    return replace(advice, costs=(*advice.costs, f"Changes pixels: {advice.pixels.psnr_in_words}"))
