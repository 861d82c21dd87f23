"""`docs/remedies/`: a page for each remedy, made from its docstring, so that the two cannot differ.

uv run python docs/remedy_pages.py
"""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path

from loaderbench.remedies import REMEDIES
from loaderbench.remedies.base import Remedy
from loaderbench.remedies.by_cause import CauseRemedy, MeasuredFirst

_EFFORTS = ("an argument of the loader", "code", "other samples, or another order, than before", "a copy of the data")


def pages() -> dict[str, str]:
    """File name to text: one for each remedy, and the list of them all."""
    made = {f"{remedy.id}.md": _page(remedy) for remedy in REMEDIES}
    return {"README.md": _index(), **made}


def _index() -> str:
    rows = [f"| [{found.id}]({found.id}.md) | {_words(found)[0]} | {_tried(found)} |" for found in REMEDIES]
    head = [
        "# Remedies",
        "",
        "What `loaderbench` may recommend. Only those of the diagnosed cause are asked, and what is so already is",
        "advised by none. Each that a trial can show is tried beside the present configuration, in interleaved pairs,",
        "before it is printed: see [verification.md](../verification.md).",
        "",
        "| remedy | why | tried |",
        "| --- | --- | --- |",
    ]
    return "\n".join([*head, *rows]) + "\n"


def _page(remedy: Remedy) -> str:
    first, *more = _words(remedy)
    parts = [f"# {remedy.id}", first, *more]
    cause = _cause(remedy)
    if cause is not None:
        parts.append(f"**Asks for** {_EFFORTS[cause.effort]}.")
        parts += [f"**Tried:** {_tried(remedy)}."]
        parts += [f"**Costs:** {'; '.join(cause.costs)}."] if cause.costs else []
        parts += [f"**Caveat:** {cause.caveat}."] if cause.caveat else []
        parts += [f"```python\n{cause.code.rstrip()}\n```"] if cause.code else []
    return "\n\n".join(parts) + "\n"


def _words(remedy: Remedy) -> list[str]:
    """The paragraphs of the docstring of its file."""
    text = inspect.cleandoc(import_module(f"loaderbench.remedies.{remedy.id}").__doc__ or "")
    return [paragraph.replace("\n", " ") for paragraph in text.split("\n\n")]


def _cause(remedy: Remedy) -> CauseRemedy | None:
    if isinstance(remedy, MeasuredFirst):
        return remedy.advised
    return remedy if isinstance(remedy, CauseRemedy) else None


def _tried(remedy: Remedy) -> str:
    cause = _cause(remedy)
    if cause is None or isinstance(remedy, MeasuredFirst):
        return "by the sweep" if cause is None else "by the sweep, or in pairs"
    if cause.untried:
        return f"no: {cause.untried}"
    return "in pairs" if cause.changes else "no: the change is in the user's own code"


def main(folder: Path) -> None:
    """Write them all; those of remedies that are no more are removed."""
    folder.mkdir(parents=True, exist_ok=True)
    found = pages()
    for old in folder.glob("*.md"):
        if old.name not in found:
            old.unlink()
    for name, text in found.items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(__file__).parent / "remedies")
