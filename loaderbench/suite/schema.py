"""The JSON Schema of a suite, for editors: what the shape allows, and the names that are checked elsewhere."""

from __future__ import annotations

from typing import Any

from loaderbench.suite.arguments import DECODERS, LOADER_ARGUMENTS, TRANSFORMS, WORKER_OPTIONS
from loaderbench.suite.model import Suite


def suite_schema() -> dict[str, Any]:
    """What `load_suite` accepts, as far as a schema can say it; a section may be empty."""
    found = Suite.model_json_schema()
    sections, options = found["properties"], found["$defs"]["ImageFolder"]["properties"]
    sections["loader"]["propertyNames"] = {"enum": [*LOADER_ARGUMENTS, *WORKER_OPTIONS]}
    options["decoder"]["enum"] = list(DECODERS)
    options["transform"]["anyOf"] = [{"enum": list(TRANSFORMS)}, {"pattern": ":"}]
    found["properties"] = {name: _or_empty(section) for name, section in sections.items()}
    return found


def _or_empty(section: dict[str, Any]) -> dict[str, Any]:
    return {"default": section.pop("default", None), "anyOf": [section, {"type": "null"}]}
