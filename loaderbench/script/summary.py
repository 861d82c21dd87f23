"""What is printed of a script's loaders at its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from loaderbench.report.terminal import print_summary
from loaderbench.script.run_folders import RecordedLoader

if TYPE_CHECKING:
    from rich.console import Console


def print_loaders(found: Sequence[RecordedLoader], console: Console, sent_to: str = "") -> None:
    """The verdict on the main loader, and a line for each of the others; one line where it is printed elsewhere."""
    if not found:
        console.print("loaderbench: no DataLoader was iterated over; nothing was recorded", highlight=False)
        return
    main, *others = found
    if sent_to:
        said = (
            f"loaderbench: the verdict of all ranks is printed by rank 0's machine, {sent_to}; this one's: {main.page}"
        )
        console.print(said, highlight=False, markup=False, soft_wrap=True)
        return
    print_summary(main.run.document, console, report_path=str(main.page))
    for other in others:
        said = f"Loader: {other.place}: {other.run.verdict.headline}; {other.page}"
        console.print(said, highlight=False, markup=False, soft_wrap=True)
