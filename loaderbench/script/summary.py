"""What is printed of a script's loaders at its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from loaderbench.report.terminal import print_summary
from loaderbench.script.run_folders import RecordedLoader

if TYPE_CHECKING:
    from rich.console import Console


def print_loaders(found: Sequence[RecordedLoader], console: Console) -> None:
    """The verdict on the main loader, and a line for each of the others."""
    if not found:
        console.print("loaderbench: no DataLoader was iterated over; nothing was recorded", highlight=False)
        return
    main, *others = found
    print_summary(main.run.document, console, report_path=str(main.page))
    for other in others:
        said = f"Loader: {other.place}: {other.run.verdict.headline}; {other.page}"
        console.print(said, highlight=False, markup=False, soft_wrap=True)
