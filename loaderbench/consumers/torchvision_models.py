"""Lists torchvision's classifiers by reading its source, because an import takes seconds."""

from __future__ import annotations

import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path

_REGISTERED = re.compile(r"""^@register_model\((?:name=)?["']?(\w*)["']?\).*?^def (\w+)\(""", re.MULTILINE | re.DOTALL)


@cache
def classifiers() -> tuple[str, ...]:
    """The names of the classifiers; empty if torchvision is not installed or registers them differently."""
    found = find_spec("torchvision")
    files = [file for place in (found and found.submodule_search_locations) or () for file in _sources(Path(place))]
    names = {given or function for file in files for given, function in _REGISTERED.findall(file.read_text("utf-8"))}
    return tuple(sorted(names))


def _sources(place: Path) -> list[Path]:
    return sorted((place / "models").glob("[!_]*.py"))
