"""Fills in the outputs that pages quote: a block below `<!-- output: COMMAND -->` holds what the command prints.

uv run python docs/quoted_outputs.py

Commands are of `loaderbench`, run in the root of the repository: on what is committed, they print the same everywhere.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
_QUOTE = re.compile(r"(<!-- output: (?P<command>[^\n]+?) -->\n\n?```\w*\n).*?(?=^```$)", re.DOTALL | re.MULTILINE)


def filled(text: str) -> str:
    """A page with today's outputs."""
    return _QUOTE.sub(lambda quote: quote[1] + printed(quote["command"]), text)


@cache
def printed(command: str) -> str:
    """What a command prints, without what a shell's prompt would add."""
    program, *arguments = shlex.split(command)
    if program != "loaderbench":
        raise ValueError(f"only loaderbench is run for a page, not: {command}")
    words = [sys.executable, "-m", "loaderbench", *arguments]
    shown = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", check=True).stdout
    return shown.strip("\n") + "\n"


def pages() -> list[Path]:
    """The pages that quote an output."""
    return sorted(path for path in (ROOT / "docs").rglob("*.md") if _QUOTE.search(path.read_text(encoding="utf-8")))


if __name__ == "__main__":
    for page in pages():
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
