"""Records are what crosses a border: they never change, are made by name, and claim nothing that nobody set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, Field, FrozenInstanceError, fields, is_dataclass
from importlib import import_module
from inspect import getmembers, isclass
from pkgutil import walk_packages
from types import ModuleType
from typing import Any

import pytest

import loaderbench.diagnosis
import loaderbench.recorder.stalls
import loaderbench.records
import loaderbench.search
import loaderbench.statistics
import loaderbench.store

ROOMS: tuple[ModuleType, ...] = (
    loaderbench.records,
    loaderbench.statistics,
    loaderbench.diagnosis,
    loaderbench.search,
    loaderbench.recorder.stalls,
    loaderbench.store,
)
COUNTERS = {"StallSums"}
"""What is added to while a run goes on."""

POSITIONAL = {
    "PixelChange",
    *("CodeLooks", "CountedStack"),
    *("Candidate", "DatasetSummary", "Failure", "Gain", "Gate", "GateResult", "Gpu", "GpuUse", "Interval"),
    *("Judgement", "Noise", "Overhead", "PlanSummary", "Spread", "StageCost", "TimeSlices", "TimelinePoint"),
    *(
        "Cause",
        "Bounds",
        "Evidence",
        "Line",
        "PcieLink",
        "Spans",
        "StageShare",
        "Subject",
        "Wait",
        "RunList",
        "Strip",
        "UnreadableRun",
    ),
}
"""Records of a few parts whose order says what they are."""

SET = {
    "basis": "measured",
    "effort": 1,
    "kind": "sweep",
    "schema_version": 2,
    "is_loader": True,
    "in_tables": True,
    "zeros": True,
}
SET_OF = {
    "Facts": {"cpus_online": 1, "wait_share": 1.0, "batch_samples": 1.0, "ranks": 1, "ranks_of_rate": 1},
    "MachineUse": {"ranks": 1},
}


def _modules(room: ModuleType) -> Iterator[ModuleType]:
    yield room
    if hasattr(room, "__path__"):
        for found in walk_packages(room.__path__, f"{room.__name__}."):
            yield import_module(found.name)


def _records() -> dict[str, Any]:
    found = {
        name: one
        for room in ROOMS
        for module in _modules(room)
        for name, one in getmembers(module, isclass)
        if is_dataclass(one) and one.__module__ == module.__name__ and name not in COUNTERS
    }
    return dict(sorted(found.items()))


RECORDS = _records()


def test_there_are_records_of_every_room() -> None:
    assert {"Trial", "RunRecord", "Interval", "Facts", "Verdict", "Cause", "Spans", "RunList"} <= RECORDS.keys()


def test_whatever_has_fields_is_a_record() -> None:
    for room in ROOMS:
        for module in _modules(room):
            for name, one in getmembers(module, isclass):
                if one.__module__ == module.__name__ and vars(one).get("__annotations__"):
                    assert "__dataclass_fields__" in vars(one), name


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_never_changes(name: str) -> None:
    record = object.__new__(RECORDS[name])
    with pytest.raises(FrozenInstanceError):
        setattr(record, fields(RECORDS[name])[0].name, None)


@pytest.mark.parametrize("name", sorted(name for name in RECORDS.keys() - POSITIONAL if not name.startswith("_")))
def test_a_record_of_many_parts_is_made_by_their_names(name: str) -> None:
    assert all(one.kw_only for one in fields(RECORDS[name]))


@pytest.mark.parametrize("name", RECORDS)
def test_what_nobody_set_is_unknown_or_empty(name: str) -> None:
    known = {**SET, **SET_OF.get(name, {})}
    for one in fields(RECORDS[name]):
        if one.default is not MISSING or one.default_factory is not MISSING:
            default = one.default if one.default is not MISSING else _made(one)
            expected = known.get(one.name, default if not default and type(default) is not bool else None)
            assert default == expected or (default is False and one.name not in known), one.name


def _made(one: Field[Any]) -> Any:
    assert one.default_factory is not MISSING
    return one.default_factory()
