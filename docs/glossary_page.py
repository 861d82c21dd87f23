"""`docs/reference/glossary.md`: made from `loaderbench/glossary.py`.

uv run python docs/glossary_page.py
"""

from __future__ import annotations

from pathlib import Path

from loaderbench.glossary import GLOSSARY, Term

PAGE = Path(__file__).parent / "reference" / "glossary.md"


def page() -> str:
    """The words in a table."""
    head = [
        "# Glossary",
        "",
        "One word for each thing. The last column lists names that you may know from `run.json` or from elsewhere.",
        "",
        "| word | meaning | also called |",
        "| --- | --- | --- |",
    ]
    return "\n".join([*head, *map(_row, GLOSSARY)]) + "\n"


def _row(term: Term) -> str:
    of_loop = " (of your own loop)" if term.used == "profile" and term.name in _OF_SWEEPS else ""
    return f"| {term.name}{of_loop} | {term.meaning} | {', '.join(term.not_called)} |"


_OF_SWEEPS = {term.name for term in GLOSSARY if term.used == "sweep"}


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
