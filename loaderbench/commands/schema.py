"""`loaderbench schema`: print the JSON Schema of a suite or of `run.json`, for editors and programs."""

from __future__ import annotations

import json
from enum import Enum
from typing import Annotated

import typer


class Kind(str, Enum):
    """The schema to print."""

    suite = "suite"
    run = "run"


def schema(kind: Annotated[Kind, typer.Argument(metavar="suite|run", help="Schema to print.")]) -> None:
    """Print the JSON Schema of a suite or of run.json."""
    from pydantic import TypeAdapter

    from loaderbench.records import RunRecord
    from loaderbench.suite.model import suite_schema

    document = suite_schema() if kind is Kind.suite else TypeAdapter(RunRecord).json_schema()
    print(json.dumps(document, indent=2))
