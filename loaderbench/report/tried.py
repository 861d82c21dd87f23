"""The remedies that were tried, in their order, and how much each added."""

from __future__ import annotations

from loaderbench.records import Config, Judgement, RunRecord, Tried, Verification, config_label
from loaderbench.report import numbers, words
from loaderbench.report.parts import Column, Fact, Row, Table, Text
from loaderbench.report.parts_inside import Breakdown

_ANSWERS = {
    "gain": "a gain",
    "loss": "slower",
    "no gain": "no gain",
    "undecided": "undecided",
    "failed": "could not be measured",
}


def tried(run: RunRecord) -> Breakdown | None:
    """Nothing where no remedy was tried."""
    found = run.verification
    if found is None or not found.tried:
        return None
    rows = tuple(_row(one, found) for one in found.tried)
    start = words.configuration(found.present).text
    return Breakdown(
        id="tried",
        title="What was tried, in order",
        lead=words.sentence(
            f"From {start}: in each round the unchanged configuration and each change ran once, in shuffled order."
        ),
        tables=(Table("Remedies and what each added", _columns(), rows),),
        facts=tuple(_result(found)),
        notes=(words.sentence(f"It ended there: {found.ended}."),) if found.ended else (),
    )


def _columns() -> tuple[Column, ...]:
    return (
        Column("Remedy"),
        Column("Change", prose=True),
        Column("On top of", prose=True),
        Column(
            "Expected", numeric=True, title="by the operational bound with one term changed; it sets the order only"
        ),
        Column("Samples/s", numeric=True, title="changed over unchanged, with its interval of 95 %"),
        Column("Pairs", numeric=True),
        Column("Found", prose=True, title="a gain has to exclude no change at 99 %: several are tried"),
        Column("PSNR, dB", numeric=True, title="how much the samples differ from the unchanged ones"),
    )


def _row(one: Tried, found: Verification) -> Row:
    how = one.judgement
    assert how is not None, "every remedy of a run that can be drawn is judged"
    answer = _ANSWERS[how.answer] + (", kept" if one.accepted else "")
    pixels = Text("the same") if one.psnr_db is None else numbers.quantity(one.psnr_db, digits=2)
    cells = (
        words.name(one.id),
        words.outside(config_label(one.change), words.LABEL_LIMIT),
        words.outside(_on_top_of(one.against, found.present), words.LABEL_LIMIT),
        _expected(one),
        _ratio(how),
        numbers.whole(how.pairs),
        Text(answer),
        pixels,
    )
    return Row(cells, mark="best" if one.accepted else "")


def _ratio(how: Judgement) -> Text:
    if how.ratio is None:
        return numbers.missing("no round holds both")
    return numbers.gain("", how.ratio.est, how.ratio.lo, how.ratio.hi)


def _expected(one: Tried) -> Text:
    if one.estimate is None:
        return numbers.missing("its cost is not a part of the operational bound")
    return Text(numbers.gain("", one.estimate, None, None).main)


def _on_top_of(against: Config, present: Config) -> str:
    """What was there already."""
    added = {name: value for name, value in against.items() if present.get(name) != value or name not in present}
    return config_label(added) or "what was there"


def _result(found: Verification) -> list[Fact]:
    """All that was kept, beside the baseline."""
    if not found.accepted or found.whole is None or found.whole.ratio is None:
        return []
    return [Fact("All that was kept, beside the baseline", _ratio(found.whole))]
