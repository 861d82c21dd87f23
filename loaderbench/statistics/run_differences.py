"""Differences between two runs: those that make them incomparable, and those that cast doubt on the comparison."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from loaderbench.consumers import consumer_kind, demand_rate
from loaderbench.datasets import saved_dataset
from loaderbench.records import RunRecord, Scalar, format_scalar

_PACKAGES = ("torch", "torchvision")
_DATA_OPTIONS = frozenset({"kind", "root", "target", "args", "generate", "sample", "skip_bad"})
"""Dataset options that decide which samples are loaded; the description and the number of files reflect them."""

_KINDS = {"sweep": "run", "profile": "profile", "ab": "ab"}
"""The command that measured a run, by its kind."""

_LONGEST = 80  # characters of a value, starting shortly before the first difference
_MORE = "\N{HORIZONTAL ELLIPSIS}"
_NOT_SET = "not set"


def differences(before: RunRecord, after: RunRecord) -> Iterator[str]:
    """Yield the differences that make the runs incomparable, with both values: `CPU: one -> another`."""
    for name, then, now in (
        ("CPU", before.environment.cpu_model, after.environment.cpu_model),
        ("available CPUs", f"{before.environment.cpus_allotted:g}", f"{after.environment.cpus_allotted:g}"),
        ("GPUs", _gpus(before), _gpus(after)),
        *((f"{name} version", _version(name, before), _version(name, after)) for name in _PACKAGES),
        ("Python version", before.environment.python, after.environment.python),
        *_data(before, after),
        ("consumer", before.consumer, after.consumer),
        *_fixed("consumer option consumer.{}", _step(before, after), _step(after, before), _axes(before, after)),
        *_target(before, after, caps=True),
    ):
        if then != now:
            yield _differs(name, then, now)


def doubts(before: RunRecord, after: RunRecord) -> Iterator[str]:
    """Yield the fixed settings that differ and affect samples/s, regardless of changes in the user's code."""
    for said, then, now in (
        ("kind of run", _KINDS[before.kind], _KINDS[after.kind]),
        ("page cache", _cache(before), _cache(after)),
        *_folders(before, after),
        *_target(before, after, caps=False),
        *_fixed("dataset option dataset.{}", _options(before, after), _options(after, before), _axes(before, after)),
        *_fixed("loader argument {}", before.loader, after.loader, _axes(before, after)),
    ):
        if then != now:
            yield _differs(said, then, now)


def _target(before: RunRecord, after: RunRecord, *, caps: bool) -> Iterator[tuple[str, Scalar, Scalar]]:
    """The target rate, if the consumer's `capped` equals `caps`."""
    kind = consumer_kind(before.consumer)
    if kind.capped == caps and before.consumer == after.consumer:
        yield f"target of the {kind.who} (samples/s)", demand_rate(before), demand_rate(after)


def _step(run: RunRecord, other: RunRecord) -> dict[str, Any]:
    """The options of a real step."""
    own, known, kind = run.section("consumer"), other.section("consumer"), consumer_kind(run.consumer)
    return {} if kind.capped else {name: own[name] for name in kind.model_fields if name in own and name in known}


def _differs(name: str, then: Scalar, now: Scalar) -> str:
    was, became = ("unknown" if value is None else value for value in (then, now))
    return f"{name}: {was} \N{RIGHTWARDS ARROW} {became}"


def _data(before: RunRecord, after: RunRecord) -> Iterator[tuple[str, Scalar, Scalar]]:
    """The properties that decide which samples are loaded; a description of files already has their number.

    One image folder is the same data however its path is written, if its files and classes are as many. An axis of data
    is part of the configurations, which are compared one by one.
    """
    then, now = before.dataset, after.dataset
    dataset = saved_dataset(before.section("dataset"))
    if dataset is not None and dataset.data_axes.keys() & _axes(before, after):
        made_then, made_now = ({"generate": run.section("dataset").get("generate")} for run in (before, after))
        yield from _fixed("dataset option dataset.{}", made_then, made_now, _axes(before, after))
    elif then.root is not None and then.root == now.root:
        yield "number of files", then.files, now.files
        yield "number of classes", then.classes, now.classes
        yield "number of files in the folder", then.total_files, now.total_files
    else:
        yield "dataset", then.description, now.description
        if then.description == now.description and then.files is not None and now.files is not None:
            yield "number of files", then.files, now.files
    args_then, args_now = (_arguments(run.section("dataset").get("args")) for run in (before, after))
    yield from _fixed("dataset argument dataset.args.{}", args_then, args_now, _axes(before, after))


def _folders(before: RunRecord, after: RunRecord) -> Iterator[tuple[str, Scalar, Scalar]]:
    """The absolute image folders, where both are known: one relative path can name two folders."""
    then, now = before.dataset.root, after.dataset.root
    if then is not None and now is not None:
        yield "image folder", then, now


def _fixed(
    said: str, then: Mapping[str, Any], now: Mapping[str, Any], axes: frozenset[str]
) -> Iterator[tuple[str, str, str]]:
    """The values that no axis replaces."""
    for name in dict.fromkeys([*then, *now]):
        if name not in axes and then.get(name, _NOT_SET) != now.get(name, _NOT_SET):
            was, became = _shown(then, name), _shown(now, name)
            start = max(0, _first_difference(was, became) - _LONGEST // 4)
            yield said.format(name), _part_of(was, start), _part_of(became, start)


def _shown(found: Mapping[str, Any], name: str) -> str:
    value = found.get(name, _NOT_SET)
    return format_scalar(value) if isinstance(value, str | int | float | None) else json.dumps(value, default=str)


def _first_difference(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (mine, its) in pairs if mine != its), min(len(one), len(other)))


def _part_of(text: str, start: int) -> str:
    """The text if it is short, or else the part from `start`."""
    if len(text) <= _LONGEST:
        return text
    shown = text[start : start + _LONGEST]
    return f"{_MORE if start else ''}{shown}{_MORE if start + _LONGEST < len(text) else ''}"


def _options(run: RunRecord, other: RunRecord) -> dict[str, Any]:
    """How samples are read and decoded; a run of an earlier version lacks options added since."""
    own, known = run.section("dataset"), other.section("dataset")
    return {name: value for name, value in own.items() if name in known and name not in _DATA_OPTIONS}


def _axes(before: RunRecord, after: RunRecord) -> frozenset[str]:
    """The axes of both runs, whose values the compared configurations contain."""
    return frozenset([*before.plan.axes, *after.plan.axes])


def _arguments(found: Any) -> dict[str, Any]:
    """The arguments of a target, if they can be read."""
    return found if isinstance(found, dict) else {}


def _cache(run: RunRecord) -> Scalar:
    value = run.section("measure").get("cache")
    return value if isinstance(value, str | int | float) else None


def _gpus(run: RunRecord) -> str:
    return ", ".join(sorted(gpu.name for gpu in run.environment.gpus)) or "none"


def _version(package: str, run: RunRecord) -> str | None:
    return run.environment.versions.get(package)
