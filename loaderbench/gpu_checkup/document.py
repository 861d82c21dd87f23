"""The file of a checkup for a bug report; it names no path, user or host of the machine."""

from __future__ import annotations

import getpass
import json
import platform
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from loaderbench.gpu_checkup.records import GpuCheck
from loaderbench.records import Environment
from loaderbench.records.words import utc_now

SCHEMA_VERSION = 1
_PATH = re.compile(r"(?<![\w/.])(?:[A-Za-z]:)?(?:[/\\][\w.+@~-]+){3,}")
"""Paths of three parts or more; `/dev/shm` and `/proc/self` belong to no user."""


def document(environment: Environment, checks: Sequence[GpuCheck]) -> dict[str, Any]:
    """Return machine, versions and checks, without the GPU's UUID."""
    machine = replace(environment, gpus=tuple(replace(gpu, uuid="") for gpu in environment.gpus))
    found: dict[str, Any] = {
        "kind": "loaderbench GPU checkup",
        "schema_version": SCHEMA_VERSION,
        "made_at": utc_now(),
        "passed": passed(checks),
        "environment": asdict(machine),
        "checks": [asdict(check) for check in checks],
    }
    cleaned: dict[str, Any] = _without_names(found, _names())
    return cleaned


def document_json(found: dict[str, Any]) -> str:
    """Return the document as JSON text."""
    return json.dumps(found, allow_nan=False, indent=1) + "\n"


def passed(checks: Sequence[GpuCheck]) -> bool:
    """Whether no check failed. A warning counts as passed."""
    return all(check.state in ("passed", "warning") for check in checks)


def _names() -> dict[str, str]:
    """Names of this user and machine, with their replacements, longest first."""
    found = {str(Path.home()): "<home>", platform.node(): "<host>"}
    with suppress(OSError, KeyError, ImportError):  # the user has no name, as in some containers
        found[getpass.getuser()] = "<user>"
    return {name: found[name] for name in sorted(found, key=len, reverse=True) if len(name) > 2}


def _without_names(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _without_names(part, names) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_without_names(part, names) for part in value]
    if not isinstance(value, str):
        return value
    for name, instead in names.items():
        value = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", instead, value)
    return _PATH.sub("<path>", value)
