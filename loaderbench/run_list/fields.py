"""What a list needs of a `run.json`: a few members out of megabytes, and one line where there are none."""

from __future__ import annotations

import functools
import json
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from loaderbench.errors import RunFileError
from loaderbench.records import READABLE_VERSIONS, Config, Interval, Kind, Scalar

MAX_BYTES = 50_000_000  # a run of 1,000 trials has some 5 MB

_UNFINISHED = "has no run.json: it is being measured, or ended before it could conclude"
_MEMBER = re.compile(r'\n "(\w+)": ')


@dataclass(frozen=True)
class Configuration:
    """One point of the sweep: what it reached, and in which trials."""

    config: Config
    samples_per_s: Interval | None = None
    trials: list[str] = field(default_factory=list)
    not_measured: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Best:
    """The configuration that the run names best."""

    config: Config
    samples_per_s: Interval


@dataclass(frozen=True)
class Verdict:
    """The verdict in its one sentence."""

    headline: str


@dataclass(frozen=True)
class Plan:
    """What was swept."""

    axes: dict[str, list[Scalar]]


@dataclass(frozen=True, kw_only=True)
class Fields:
    """What a list needs of `run.json`; whatever else it holds is not looked at."""

    name: str
    started_at: str
    complete: bool
    plan: Plan
    configurations: list[Configuration]
    best: Best | None
    verdict: Verdict
    kind: Kind = "sweep"
    not_measured: dict[str, str] = field(default_factory=dict)


_WANTED = (*Fields.__dataclass_fields__, "schema_version")


def read_fields(file: Path) -> Fields:
    """Read one `run.json`.

    Raises `RunFileError` in one line, `OSError`, and `ValueError` or `RecursionError` where it is not even JSON.
    """
    data = _members(_text(file))
    version = data.get("schema_version") if isinstance(data, dict) else None
    if version not in READABLE_VERSIONS:
        readable = " and ".join(map(str, READABLE_VERSIONS))
        raise RunFileError(f"schema_version is {str(version)[:40]}; this version reads {readable}")
    try:
        return _adapter().validate_python(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise RunFileError(f"run.json: {where}: {first['msg'].lower()}") from None


@functools.cache
def _adapter() -> TypeAdapter[Fields]:
    return TypeAdapter(Fields)


def _text(file: Path) -> str:
    try:
        found = file.stat()
    except FileNotFoundError:
        raise RunFileError(_UNFINISHED) from None
    if not stat.S_ISREG(found.st_mode):
        raise RunFileError("run.json is no file")
    if found.st_size > MAX_BYTES:
        raise RunFileError(f"run.json is larger than {MAX_BYTES:,} bytes")
    return file.read_text(encoding="utf-8")


def _members(text: str) -> Any:
    """The members of a run that are wanted; all of them where it was not written by `store.run_json`.

    That writes each on a line of its own and one space in, which no string can hold: ten times as fast as parsing
    megabytes of trials. A file that ends too early lacks its last member, and a full parse tells where.
    """
    places = {found[1]: found.end() for found in _MEMBER.finditer(text)}
    if not places.keys() >= set(_WANTED):
        return json.loads(text)
    decoder = json.JSONDecoder()
    return {name: decoder.raw_decode(text, places[name])[0] for name in _WANTED}
