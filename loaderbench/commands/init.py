"""`loaderbench init`: write a suite that fits a folder of images and this machine."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from loaderbench.commands.outputs import STDOUT, write_output, writing
from loaderbench.errors import UsageError


def init(
    root: Annotated[
        Path | None,
        typer.Argument(metavar="[DIR]", help="Image folder: DIR/class/name.jpg; default synthetic JPEGs."),
    ] = None,
    out: Annotated[
        str | None, typer.Option(metavar="FILE", help="Suite file; default NAME.yaml here; - is stdout.")
    ] = None,
) -> None:
    """Write a commented suite for a folder of images."""
    from loaderbench.commands.outputs import said_if_slow
    from loaderbench.monitors import count_gpus
    from loaderbench.session.first_suite import GENERATED, look_at, name_of, suite_text
    from loaderbench.suite import load_suite

    file = Path(f"{name_of(root)}.yaml" if out in {None, STDOUT} else str(out))
    with said_if_slow("Listing the folder's files"):
        folder = look_at(root) if root is not None else GENERATED
    text = suite_text(folder, file, gpus=count_gpus())
    if out == STDOUT:
        write_output("--out", STDOUT, text)
        return
    if file.exists():
        raise UsageError(f"{file}: already exists; choose another file with --out")
    with writing(str(file)), file.open("x", encoding="utf-8") as opened:
        opened.write(text)
    load_suite(file)
    print(f"Wrote {file}; measure it with: loaderbench run {shlex.quote(str(file))}")
