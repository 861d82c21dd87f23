"""`loaderbench photos`: a folder of photo-like JPEGs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loaderbench.commands.options import ProgressKind


def photos(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that does not exist yet, or is empty.")],
    images: Annotated[int, typer.Option(min=1, help="How many.")] = 512,
    like: Annotated[str, typer.Option(help="Whose statistics they have: imagenet.")] = "imagenet",
    classes: Annotated[int, typer.Option(min=1, help="Spread over so many class folders.")] = 8,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same photos.")] = 0,
    progress: Annotated[ProgressKind, typer.Option(help="How progress is shown, on stderr.")] = ProgressKind.auto,
) -> None:
    """Write a folder of JPEGs that cost what photographs cost."""
    from loaderbench.commands.progress import make_listener
    from loaderbench.datasets.photos import generate_photos

    with make_listener(progress, verbose=False) as listener:
        generate_photos(
            folder, images=images, seed=seed, like=like, classes=classes, on_progress=listener.generating
        )  # fmt: skip
    print(f"{images:,} photos in {folder}")
