"""`docs/reference/fixes/`: a page for each fix, made from the docstring of its file, and the list of them all.

A docstring says what is wrong, then `Triggers when`, `What it does` and `How to confirm`, a paragraph each. `Costs`
are those of the fix in the code; a fix without any there has them in its docstring.

uv run python docs/remedy_pages.py
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from string import Formatter

from loaderbench.remedies import REMEDIES
from loaderbench.remedies.base import Remedy
from loaderbench.remedies.by_cause import CauseRemedy, MeasuredFirst
from loaderbench.remedies.room import UNTRIED, RoomRemedy
from loaderbench.remedies.verified import COMBINATION

_OTHER_SAMPLES = 2
_EFFORTS = ("one argument", "code change", "code change; pixels differ", "a copy of the data")
_OTHER_ORDER = "one argument; batch order changes"


_COMBINATION = f"""# Apply all accepted fixes

`{COMBINATION}`: Gains do not add up, so all accepted fixes together are measured against the baseline. It is the
first fix of a report.

**Triggers when** at least one fix was accepted and the gain of all of them is measured. There is none if a single
change is equivalent.

**What it does:** it sets all arguments of the accepted fixes, and those of the configuration that they were tried on.

**Costs:** those of its parts; workers, memory and CPU use as measured.

**Measured:** in interleaved pairs, with the baseline.

**How to confirm:** the report names both rates and the number of pairs. The command below them repeats it.
"""


def pages() -> dict[str, str]:
    """File name to text: one for each fix, and the list of them all."""
    made = {f"{remedy.id}.md": _page(remedy) for remedy in REMEDIES}
    return {"index.md": _index(), f"{COMBINATION}.md": _COMBINATION, **made}


def _index() -> str:
    rows = [
        f"| [{found.id}]({found.id}.md) | {_title(found)} | {_said(found)['']} | {_measured(found)} |"
        for found in REMEDIES
    ]
    head = [
        "# Fixes",
        "",
        "`loaderbench` suggests only fixes for the diagnosed cause, and none that is already in place. It measures a",
        "fix before it prints a gain, in interleaved pairs with the unchanged config. See",
        "[verification](../../explanation/verification.md).",
        "",
        "| id | fix | what is wrong | measured |",
        "| --- | --- | --- | --- |",
        f"| [{COMBINATION}]({COMBINATION}.md) | Apply all accepted fixes | Gains do not add up. |"
        " in interleaved pairs |",
    ]
    return "\n".join([*head, *rows]) + "\n"


def _page(remedy: Remedy) -> str:
    cause, said = _cause(remedy), _said(remedy)
    parts = [
        f"# {_title(remedy)}",
        f"`{remedy.id}`: {said.pop('')}",
        *(f"**{label}** {text}" for label, text in said.items() if label != _CONFIRM),
        *(_of_the_cause(cause, costs_are_known=_COSTS in said) if cause else ()),
        f"**Measured:** {_measured(remedy)}.",
        f"**{_CONFIRM}** {said[_CONFIRM]}",
        *([f"```python\n{cause.code.rstrip()}\n```"] if cause and cause.code else []),
        *([f"```\n{remedy.code.format(mib='N').rstrip()}\n```"] if isinstance(remedy, RoomRemedy) else []),
    ]
    return "\n\n".join(parts) + "\n"


def _of_the_cause(cause: CauseRemedy, *, costs_are_known: bool) -> Iterator[str]:
    known = [*cause.costs, *(["Changes pixels"] if cause.changes_pixels else [])]
    unnamed = "Memory and CPU use, as measured in the run" if cause.changes else "A change in your own code"
    if not costs_are_known:
        yield f"**{_COSTS}** {'. '.join(known) or unnamed}."
    if cause.caveat:
        yield f"**Caveat:** {cause.caveat}."
    differs_in_order = cause.effort == _OTHER_SAMPLES and not cause.changes_pixels
    yield f"**Effort:** {_OTHER_ORDER if differs_in_order else _EFFORTS[cause.effort]}."


_COSTS, _CONFIRM = "Costs:", "How to confirm:"
_LABELS = ("Triggers when", "What it does:", _COSTS, _CONFIRM)


def _said(remedy: Remedy) -> dict[str, str]:
    """The paragraphs of the docstring of its file by their labels; the first one has none."""
    text = inspect.cleandoc(import_module(f"loaderbench.remedies.{remedy.id}").__doc__ or "")
    first, *rest = (paragraph.replace("\n", " ") for paragraph in text.split("\n\n"))
    labels = [next(label for label in _LABELS if paragraph.startswith(label)) for paragraph in rest]
    return {"": first, **{label: text.removeprefix(label).strip() for label, text in zip(labels, rest, strict=True)}}


def _title(remedy: Remedy) -> str:
    """Its title, with `N` for a count that depends on the run."""
    cause = _cause(remedy)
    if cause is None:
        return str(getattr(remedy, "title", None) or import_module(type(remedy).__module__).TITLE).format("N")
    names = [name for _, name, _, _ in Formatter().parse(cause.title) if name]
    return cause.title.format(**{**dict.fromkeys(names, "N"), **cause.values})


def _cause(remedy: Remedy) -> CauseRemedy | None:
    if isinstance(remedy, MeasuredFirst):
        return remedy.advised
    return remedy if isinstance(remedy, CauseRemedy) else None


def _measured(remedy: Remedy) -> str:
    if isinstance(remedy, RoomRemedy):
        return f"no; {UNTRIED.removeprefix('Not measured: ')}"
    cause = _cause(remedy)
    if cause is None or isinstance(remedy, MeasuredFirst):
        return "by the sweep" if cause is None else "by the sweep, or in interleaved pairs"
    if cause.untried:
        return f"no; {cause.untried.removeprefix('Not measured: ')}"
    return "in interleaved pairs" if cause.changes else "no; it changes your own code"


def main(folder: Path) -> None:
    """Write all pages, and delete those of fixes that no longer exist."""
    folder.mkdir(parents=True, exist_ok=True)
    found = pages()
    for old in folder.glob("*.md"):
        if old.name not in found:
            old.unlink()
    for name, text in found.items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(__file__).parent / "reference" / "fixes")
