"""Prints the result for each of a script's loaders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from loaderbench.report.terminal import print_summary, say_whole
from loaderbench.script.run_folders import RecordedLoader

if TYPE_CHECKING:
    from rich.console import Console


_NONE = (
    "loaderbench: nothing was recorded: this process iterated over no torch DataLoader. If the script spawns "
    "processes, use: loaderbench {verb} -- python SCRIPT. Forked processes cannot be recorded."
)
_UNRECORDED = "loaderbench: nothing was recorded"
_MOST_OTHERS = 5  # lines printed
_LOST = "loaderbench: nothing was saved: the script ended too early (signal, os._exit or os.exec*)"


def print_loaders(
    found: Sequence[RecordedLoader],
    console: Console,
    sent_to: str = "",
    *,
    begun: bool = False,
    lost: bool = False,
    failure: str = "",
    verb: str = "profile",
    with_next_step: bool = True,
) -> None:
    """Print the verdict on the main loader, and one line for each of the others.

    If another machine prints the verdict (`sent_to`), one line says so. `begun`: a loader was iterated over, even if
    nothing was recorded; the reason was then already printed, unless the recording is `lost`. `failure` says why a
    launcher or its ranks ended early. `verb` is the name of the command. The next step is left out where another result
    follows that says what to do.
    """
    if failure or not found:
        unknown = _LOST if lost else _UNRECORDED if begun else _NONE.format(verb=verb)
        say_whole(console, f"loaderbench: {failure}" if failure else unknown)
    if not found:
        return
    main, *others = found
    if sent_to:
        line = f"verdict for all ranks: on the machine of rank 0, {sent_to}; report of this machine: {main.page}"
        say_whole(console, f"loaderbench: {line}")
        return
    print_summary(main.run.document, console, report_path=str(main.page), with_next_step=with_next_step)
    for other in others[:_MOST_OTHERS]:
        parts = filter(None, (other.run.verdict.headline, _first_fix(other), other.note, str(other.page)))
        say_whole(console, f"Loader: {other.place}: {'; '.join(parts)}")
    if len(others) > _MOST_OTHERS:
        say_whole(console, f"{len(others) - _MOST_OTHERS} more loaders: {main.page.parent / '*' / main.page.name}")


def _first_fix(found: RecordedLoader) -> str:
    """The title of the first fix for a loader; empty without one."""
    fixes = [f"first fix: {fix.title}" for fix in found.run.recommendations if fix.status == "open"]
    return next(iter(fixes), "")
