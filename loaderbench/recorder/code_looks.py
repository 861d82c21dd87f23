"""From looks at threads that load to the lines of code with the largest shares of loading time."""

from __future__ import annotations

import linecache
from collections import Counter
from collections.abc import Mapping

from loaderbench.code_places import shown_path
from loaderbench.records import CodeLooks, LineLooks
from loaderbench.tracing.block import CodeLine

MOST_LINES = 5
FEWEST_LOOKS = 20
TOO_FEW = f"fewer than {FEWEST_LOOKS} looks at the loading threads"


def code_looks_of(lines: Mapping[CodeLine, float], folder: str) -> CodeLooks | None:
    """Add up what each line called, and name it relative to a folder; `None` for too few looks to say anything."""
    looks = sum(lines.values())
    if looks < FEWEST_LOOKS:
        return None
    places: Counter[tuple[str, int, str]] = Counter()
    below: dict[tuple[str, int, str], Counter[str]] = {}
    for line, count in lines.items():
        place = (line.file, line.line, line.function)
        places[place] += count  # type: ignore[assignment]  # typeshed counts in whole numbers
        below.setdefault(place, Counter())[line.below] += count  # type: ignore[assignment]
    found = (_line(place, count / looks, below[place], folder) for place, count in places.most_common(MOST_LINES))
    return CodeLooks(looks=round(looks), lines=tuple(found))


def _line(place: tuple[str, int, str], share: float, below: Counter[str], folder: str) -> LineLooks:
    file, number, function = place
    called, most = below.most_common(1)[0]
    return LineLooks(
        place=f"{shown_path(file, folder)}:{number}",
        function=function,
        share=share,
        text=linecache.getline(file, number).strip()[:200],
        below=called if most > below.total() / 2 else "",
    )
