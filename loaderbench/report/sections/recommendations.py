"""Fixes as cards, with their changes, gains, costs and evidence, and the list of tried fixes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from loaderbench.consumers import consumer_kind
from loaderbench.diagnosis.ranking import find_subject
from loaderbench.records import (
    IDENTICAL,
    Config,
    Judgement,
    Recommendation,
    RunRecord,
    Scalar,
    Tried,
    Verification,
    config_label,
    format_scalar,
    gain_reference,
)
from loaderbench.records.words import count
from loaderbench.report import axes, numbers, words
from loaderbench.report.model import (
    Block,
    Breakdown,
    Column,
    Details,
    Fact,
    Facts,
    Link,
    Row,
    Section,
    Table,
    Text,
    Value,
)
from loaderbench.report.rerun_command import command_for_change
from loaderbench.report.view import View
from loaderbench.statistics.judging import ENOUGH_PAIRS
from loaderbench.statistics.target_rate import AT_THE_CAP

_BADGES = {
    "measured": "Measured with and without the change, in paired rounds.",
    "predicted": "Predicted from the costs measured in this run; not run.",
    "heuristic": "Advice: a known fix for this cause; not measured in this run.",
}
_HEADINGS = {
    "measured": "Measured in this run",
    "predicted": "Predicted, not run",
    "heuristic": "Not measured",
}
_BADGE_WORDS = {"heuristic": "not measured"}
_OWN_RATES = "Fixes tried after the sweep ran without the emulated GPU; their rates differ from the table."
_ANSWERS = {
    "gain": "gain",
    "loss": "slower",
    "no gain": "no gain",
    "undecided": "undecided",
    "failed": "not measured",
}


@dataclass(frozen=True)
class Snippet:
    """Text to copy, with the name of its language."""

    language: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Card:
    """One fix: its change, gain and costs, with evidence.

    `outcome` summarizes the fix in one line. `is_floor` is true if its gain is a lower bound. `command` measures it
    again. `heading` is set on the first card of each basis, if there are several bases.
    """

    title: Text
    change: tuple[Fact, ...]
    badge: str
    badge_title: str
    gain: Value | None
    gain_label: str
    costs: tuple[Text, ...]
    evidence: tuple[Text, ...]
    trials: tuple[Link, ...]
    caveat: Text | None
    snippets: tuple[Snippet, ...]
    outcome: str
    is_floor: bool
    heading: str | None = None
    command: str | None = None

    @property
    def badge_text(self) -> str:
        """The badge as displayed."""
        return _BADGE_WORDS.get(self.badge, self.badge)


@dataclass(frozen=True)
class Cards(Block):
    """The fixes, sorted by gain, or `empty` with the reason why there are none.

    `of_rates` says why rates differ from those of the sweep, if they do. `references` explains what gains are relative
    to.
    """

    template = "cards.html"
    cards: tuple[Card, ...]
    empty: str | None = None
    of_rates: str | None = None
    references: Text | None = None


def section(view: View) -> Section | None:
    """The fixes, then all tried fixes, those that are not needed, and those that could not be checked."""
    run = view.run
    has_cause = run.verdict.bound == "input" and run.verdict.limit is not None
    if view.profile and not run.recommendations and not has_cause:
        return None
    cards = _with_headings([_card(r, run, view.anchors) for r in run.recommendations if r.status == "open"])
    fine = [r for r in run.recommendations if r.status == "already_ok"]
    asides = (
        ("Tried, no gain", [r for r in fine if r.basis == "measured"]),
        ("Passed", [r for r in fine if r.basis != "measured"]),
        ("Undecided or not checked", [r for r in run.recommendations if r.status == "not_checked"]),
    )
    verified = None if view.profile else run.verification
    blocks = (
        Cards(cards, None if cards else _empty(run), _of_rates(run), _references(run, cards)),
        *((_tried(verified),) if verified and verified.tried else ()),
        *(Details(title, (Facts(tuple(map(_without_action, of))),), len(of)) for title, of in asides if of),
    )
    return Section(id="recommendations", title="Fixes", label="Fixes", blocks=blocks)


def _of_rates(run: RunRecord) -> str | None:
    """A note on tried fixes: their rates are not capped by an emulated GPU, unlike those of the sweep."""
    own = {trial.id for trial in run.remedy_trials}
    tried = any(
        found.status == "open" and found.basis == "measured" and own & {*found.trials} for found in run.recommendations
    )
    return _OWN_RATES if tried and consumer_kind(run.consumer).capped else None


def _references(run: RunRecord, cards: Sequence[Card]) -> Text | None:
    """The configurations that gains are relative to; `None` if no gain names one."""
    named = [("baseline", "the starting config", run.baseline.config)]
    named += [("best config", "the recommended config of the sweep", run.best.config)] if run.best else []
    sentences = [
        f"\u201cvs {name}\u201d: relative to {what} ({axes.label(run, config).text})."
        for name, what, config in named
        if any(card.gain_label.startswith(f"vs {name}") for card in cards)
    ]
    return words.sentence(" ".join(sentences)) if sentences else None


def _with_headings(cards: Sequence[Card]) -> tuple[Card, ...]:
    """Add a heading for each basis if there are several, to separate advice from measurements."""
    badges = [card.badge for card in cards]
    if len(set(badges)) < 2:
        return tuple(cards)
    firsts = {badges.index(badge) for badge in set(badges)}
    return tuple(
        replace(card, heading=_HEADINGS[card.badge]) if place in firsts else card for place, card in enumerate(cards)
    )


def _empty(run: RunRecord) -> str:
    if run.verdict.bound == "compute":
        return "No fixes: the loader keeps up."
    if run.best is None and run.kind != "profile":
        reason = run.not_measured.get("best", "no best config was found")
        return f"No fixes: {words.plain(reason, words.SENTENCE_LIMIT)}."
    if run.verdict.bound == "unknown":
        return "No fixes: the cause of the data wait is unknown."
    if run.verdict.limit == "neighbors" and run.verification is None:
        return "No fixes tried: other programs hold the CPUs. Stop them, then run again."
    if run.kind == "profile":
        return "No fixes: none is known for this cause."
    tried = {found.id for found in run.verification.tried} if run.verification else set()
    in_vain = [r for r in run.recommendations if r.status == "already_ok" and r.id in tried]
    lines = [
        f"{words.plain(r.title, words.LABEL_LIMIT)}: {words.plain(r.reason, words.SENTENCE_LIMIT)}."
        for r in in_vain
        if r.reason
    ]
    undecided = _undecided(run.verification)
    none = "No fix was confirmed." if undecided else "No fixes." if lines else "No fixes: nothing to change was found."
    return " ".join([none, *lines, *undecided])


def _undecided(verification: Verification | None) -> list[str]:
    """One sentence on fixes without a decision when the search ended."""
    open_ = [
        f"{config_label(one.change)}, {_so_far(one.judgement)}"
        for one in (verification.tried if verification else ())
        if one.judgement and one.judgement.answer == "undecided"
    ]
    return [words.plain(f"Undecided: {'; '.join(open_)}.", words.SENTENCE_LIMIT)] if open_ else []


def _so_far(judgement: Judgement) -> str:
    if judgement.ratio is None:
        return "no complete pair"
    needed = f"; {ENOUGH_PAIRS} are needed" if judgement.pairs < ENOUGH_PAIRS else ""
    return f"{_ratio(judgement).text} in {count(judgement.pairs, 'pair')}{needed}"


def _without_action(fix: Recommendation) -> Fact:
    """A fix that is already in place, or that could not be checked."""
    title = words.outside(fix.title, words.LABEL_LIMIT)
    reason = words.sentence(fix.reason) if fix.reason else Text("no reason was recorded")
    return Fact(title.text, reason, title.title)


def _card(fix: Recommendation, run: RunRecord, anchors: Mapping[str, str]) -> Card:
    gain, before = _gain(fix, run), _before(fix, run)
    part = ["Part of the first fix"] if _is_part_of_first(fix, run) else []
    title = words.outside(fix.title, words.LABEL_LIMIT)
    badge = fix.basis or "heuristic"
    return Card(
        title=title,
        change=_change(fix.change, before),
        badge=badge,
        badge_title=_BADGES[badge],
        gain=gain,
        gain_label=_reference(fix, run),
        costs=tuple(words.sentence(text) for text in fix.costs),
        evidence=tuple(words.sentence(text) for text in (*fix.evidence, *part)),
        trials=tuple(Link(words.name(id_), anchors[id_]) for id_ in fix.trials if id_ in anchors),
        caveat=words.sentence(fix.caveat) if fix.caveat else None,
        snippets=_snippets(fix),
        command=command_for(fix, run),
        outcome=outcome(fix, run),
        is_floor=fix.gain is not None and fix.gain.is_floor,
    )


def command_for(fix: Recommendation, run: RunRecord) -> str | None:
    """The command that measures a fix, again or for the first time; `None` if no sweep can measure it."""
    return command_for_change(run, fix.change, _before(fix, run))


def _before(fix: Recommendation, run: RunRecord) -> Config:
    """The starting configuration of a change: its reference, or the verdict's configuration if there is no gain."""
    if fix.against is not None or fix.gain is not None:
        return fix.against or run.baseline.config
    subject = find_subject(run.best, run.configurations) or run.baseline
    return run.baseline.config if axes.holds(subject.config, fix.change) else subject.config


def _reference(fix: Recommendation, run: RunRecord) -> str:
    """The reference of the gain, such as `vs baseline`."""
    return gain_reference(fix, run.baseline.config, run.best.config if run.best else None) or ""


def _gain(fix: Recommendation, run: RunRecord) -> Value | None:
    """The gain of the change, with its reference; `None` if it has no number."""
    if fix.gain is None:
        return None
    value = numbers.gain(fix.gain.est, fix.gain.lo, fix.gain.hi, _reference(fix, run))
    if not fix.gain.is_floor:
        return value
    return replace(value, text=f"{value.text}, capped by the target", main=f"at least {value.main}")


def outcome(fix: Recommendation, run: RunRecord, unit: str = "") -> str:
    """Gain, rates, target and pixels in one line: `+93% vs baseline (83-103%): 522 -> 999, meets the target`."""
    gain = _gain(fix, run)
    rates = [f"{_rates(fix)}{unit}"] if fix.before and fix.after else []
    part = ["part of 1"] if _is_part_of_first(fix, run) else []
    line = ": ".join(filter(None, (gain.text if gain else "", ", ".join([*rates, *_of_target(fix), *part]))))
    return "; ".join(filter(None, (line, fix.changes_pixels or "")))


def _is_part_of_first(fix: Recommendation, run: RunRecord) -> bool:
    """Whether the first fix includes this one. A first fix with a capped gain has no number to refer to."""
    first = next((each for each in run.recommendations if each.status == "open"), None)
    if first is None or first is fix or not fix.change or (first.gain and first.gain.is_floor):
        return False
    return fix.change.items() < first.change.items()


def _of_target(fix: Recommendation) -> list[str]:
    """A note if the target is met. A rate capped by the target cannot show that."""
    if fix.meets_target:
        return ["meets the target"]
    return [f"at the target (within {1 - AT_THE_CAP:.0%})"] if fix.gain and fix.gain.is_floor else []


def _rates(fix: Recommendation) -> str:
    before, after = (numbers.quantity(rate.est).text for rate in (fix.before, fix.after) if rate)
    return f"{before} \u2192 {after}"


def _change(change: Mapping[str, Scalar], before: Mapping[str, Scalar]) -> tuple[Fact, ...]:
    """Changed values, such as `num_workers: 0 -> 2`, or only the new value if the old one is unknown."""
    return tuple(
        Fact(words.plain(axis, words.NAME_LIMIT), _step(axis, value, before))
        for axis, value in change.items()
        if axis not in before or axes.key(before[axis]) != axes.key(value)
    )


def _step(axis: str, value: Scalar, before: Mapping[str, Scalar]) -> Text:
    new = format_scalar(value)
    return words.name(f"{format_scalar(before[axis])} \u2192 {new}" if axis in before else new)


def _snippets(fix: Recommendation) -> tuple[Snippet, ...]:
    texts = (("Python", fix.snippet), ("YAML", fix.snippet_yaml))
    return tuple(Snippet(language, words.clean(text)) for language, text in texts if text)


def _tried(verification: Verification) -> Details:
    """The tried fixes, in order, and the gain that each added."""
    rows = tuple(_row(one, verification) for one in verification.tried)
    start = words.configuration(verification.present).text
    breakdown = Breakdown(
        title="Fixes tried, in order",
        lead=words.sentence(
            f"Start: {start}. Each round measured the unchanged config and each change once, in shuffled order. "
            "Changes that gained were then measured together, and again with each left out."
        ),
        tables=(Table("Fixes and what each gained", _columns(), rows),),
        facts=tuple(_result(verification)),
        notes=(words.sentence(f"Stopped: {verification.ended}."),) if verification.ended else (),
    )
    return Details(breakdown.title, (breakdown,))


def _columns() -> tuple[Column, ...]:
    return (
        Column("Fix"),
        Column("Change", prose=True),
        Column("On top of", prose=True),
        Column("Expected", numeric=True, title="predicted from the throughput limits; used only to order the fixes"),
        Column("Samples/s", numeric=True, title="changed vs unchanged, 95% interval over pairs"),
        Column("Pairs", numeric=True),
        Column("Result", prose=True, title="a gain must be significant at 99%, because several fixes are tried"),
        Column("PSNR, dB", numeric=True, title="of the changed samples vs the unchanged ones"),
    )


def _row(one: Tried, verification: Verification) -> Row:
    how = one.judgement
    assert how is not None, "every remedy of a run that can be drawn is judged"
    answer = _ANSWERS[how.answer] + (", kept" if one.accepted else "")
    cells = (
        words.name(one.id),
        words.outside(config_label(one.change), words.LABEL_LIMIT),
        words.outside(_on_top_of(one.against, verification.present), words.LABEL_LIMIT),
        _expected(one),
        _ratio(how),
        numbers.whole(how.pairs),
        Text(answer),
        _pixels(one),
    )
    return Row(cells, mark="best" if one.accepted else "")


def _pixels(one: Tried) -> Text | Value:
    why_not = one.not_measured.get("psnr_db", "")
    if why_not == IDENTICAL.why_not:
        return Text(why_not)
    return numbers.quantity(one.psnr_db, reason=why_not, digits=2)


def _ratio(how: Judgement) -> Text:
    if how.ratio is None:
        return numbers.missing("never measured in the same round")
    return numbers.gain(how.ratio.est, how.ratio.lo, how.ratio.hi)


def _expected(one: Tried) -> Text:
    if one.estimate is None:
        return numbers.missing("not part of the throughput limits")
    return Text(numbers.gain(one.estimate, None, None).main)


def _on_top_of(against: Config, present: Config) -> str:
    """The fixes that it was tried on top of."""
    added = {name: value for name, value in against.items() if present.get(name) != value or name not in present}
    return config_label(added) or "unmodified config"


def _result(verification: Verification) -> list[Fact]:
    """All accepted fixes vs baseline."""
    if not verification.accepted or verification.whole is None or verification.whole.ratio is None:
        return []
    return [Fact("All accepted fixes vs baseline", _ratio(verification.whole))]
