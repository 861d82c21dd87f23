"""`loaderbench photos`: write a folder of synthetic JPEGs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loaderbench.commands.options import ProgressKind, ShowProgress

MOST = 1_000_000


def photos(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to write; new or empty.")],
    images: Annotated[int, typer.Option(metavar="N", min=1, max=MOST, help="Number of images.")] = 512,
    like: Annotated[str, typer.Option(metavar="NAME", help="Image statistics; only imagenet.")] = "imagenet",
    classes: Annotated[int, typer.Option(metavar="N", min=1, max=MOST, help="Number of class folders.")] = 8,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Random seed.")] = 0,
    progress: ShowProgress = ProgressKind.auto,
) -> None:
    """Write a folder of synthetic JPEGs."""
    from loaderbench.commands.progress import make_listener
    from loaderbench.datasets.photos import generate_photos
    from loaderbench.records.words import count

    with make_listener(progress, verbose=False) as listener:
        generate_photos(
            folder, images=images, seed=seed, like=like, classes=classes, on_progress=listener.generating
        )  # fmt: skip
    print(f"Wrote {count(images, 'synthetic JPEG')} to {folder}")
