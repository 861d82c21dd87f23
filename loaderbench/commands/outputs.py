"""Where a result goes besides the run folder: files that flags name, or stdout."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from loaderbench.errors import UsageError

STDOUT = "-"

JsonFile = Annotated[str | None, typer.Option("--json", help="Write run.json there too; - is stdout.")]
MarkdownFile = Annotated[
    str | None, typer.Option("--md", metavar="FILE", help="Write a comment for a pull request there; - is stdout.")
]


def check_outputs(json_file: str | None, md_file: str | None, junit: Path | None = None) -> None:
    """Find out before measuring whether each can be written, and that they are two. Raises `UsageError`."""
    if json_file is not None and json_file == md_file:
        raise UsageError(f"--json {json_file} --md {md_file}: one place cannot take both; give one of them another")
    for flag, place in (("--json", json_file), ("--md", md_file), ("--junit", str(junit) if junit else None)):
        if place is not None and place != STDOUT:
            with _one_line(flag, place):
                Path(place).open("a").close()


def write_output(flag: str, place: str, text: str) -> None:
    """Write to a file, or to stdout in UTF-8 whatever the terminal's own is. Raises `UsageError`."""
    if place == STDOUT:
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8"))
        sys.stdout.buffer.flush()
        return
    with _one_line(flag, place):
        Path(place).write_text(text, encoding="utf-8")


@contextmanager
def _one_line(flag: str, place: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"{flag} {place}: cannot be written to: {error.strerror or error}") from None
