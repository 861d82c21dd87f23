"""Recommendations as cards: what to change, what it gave, what it costs, and where to see that it is so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from loaderbench.records import Config, Recommendation, RunRecord, Scalar, format_scalar
from loaderbench.report import axes, numbers, words
from loaderbench.report.again import command_for_change
from loaderbench.report.parts import Aside, Card, Fact, Link, RecommendationsPart, Snippet, Text, Value

_BADGES = {
    "measured": "Measured: the change was run again beside the unchanged configuration, in paired rounds.",
    "predicted": "Predicted: computed from the costs measured in this run; it was not run.",
    "heuristic": "Heuristic: others report it; this run neither measured nor predicted it.",
}
_HEADINGS = {
    "measured": "Measured in this run",
    "predicted": "Predicted from this run's costs, not run",
    "heuristic": "Advice for this cause, not measured here",
}


def recommendations(run: RunRecord, anchors: Mapping[str, str]) -> RecommendationsPart:
    """The three groups, each in the order the run put them."""
    found = run.recommendations
    cards = _with_headings([_card(r, run, anchors) for r in found if r.status == "open"])
    return RecommendationsPart(
        cards=cards,
        without_gain=tuple(_aside(r) for r in found if r.status == "already_ok" and r.basis == "measured"),
        already_fine=tuple(_aside(r) for r in found if r.status == "already_ok" and r.basis != "measured"),
        not_checked=tuple(_aside(r) for r in found if r.status == "not_checked"),
        empty=None if cards else _empty(run),
    )


def _with_headings(cards: Sequence[Card]) -> tuple[Card, ...]:
    """Nobody shall take advice for a measurement: each basis has its own heading, where there are several."""
    badges = [card.badge for card in cards]
    if len(set(badges)) < 2:
        return tuple(cards)
    firsts = {badges.index(badge) for badge in set(badges)}
    return tuple(
        replace(card, heading=_HEADINGS[card.badge]) if place in firsts else card for place, card in enumerate(cards)
    )


def _empty(run: RunRecord) -> str:
    if run.best is None:
        reason = run.not_measured.get("best", "no configuration is named best")
        return f"Nothing can be recommended: {words.plain(reason, words.SENTENCE_LIMIT)}."
    if run.verdict.bound == "unknown":
        return "Nothing is recommended, because the cause of the wait could not be told."
    return "Nothing to change was found."


def _aside(found: Recommendation) -> Aside:
    reason = words.sentence(found.reason) if found.reason else Text("no reason was recorded")
    return Aside(words.outside(found.title, words.LABEL_LIMIT), reason)


def _card(found: Recommendation, run: RunRecord, anchors: Mapping[str, str]) -> Card:
    gain = _gain(found)
    title = words.outside(found.title, words.LABEL_LIMIT)
    badge = found.basis or "heuristic"
    return Card(
        id=words.plain(found.id, words.NAME_LIMIT),
        title=title,
        change=_change(found.change, run.baseline.config if run.baseline else {}),
        badge=badge,
        badge_title=_BADGES[badge],
        gain=gain,
        gain_label=numbers.metric_name(found.gain.metric) if found.gain else "",
        costs=tuple(words.sentence(text) for text in found.costs),
        evidence=tuple(words.sentence(text) for text in found.evidence),
        trials=tuple(Link(words.name(id_), anchors[id_]) for id_ in found.trials if id_ in anchors),
        caveat=words.sentence(found.caveat) if found.caveat else None,
        snippets=_snippets(found),
        command=command_for_change(run, found.change, _before(found, run)),
        one_line=f"[{badge}] {title.text}" + (f": {gain.text}" if gain else ""),
    )


def _before(found: Recommendation, run: RunRecord) -> Config:
    """What the change was measured beside, as far as the page knows it: a remedy's own, else the baseline."""
    tried = run.verification.tried if run.verification else ()
    own = next((one.against for one in tried if one.id == found.id and one.change == found.change), None)
    return own or (run.baseline.config if run.baseline else {})


def _gain(found: Recommendation) -> Value | None:
    """What the change gives; without a number only a heuristic is left, and it says so by its badge."""
    if found.gain is None:
        return None
    return numbers.gain(found.gain.metric, found.gain.est, found.gain.lo, found.gain.hi)


def _change(change: Mapping[str, Scalar], before: Mapping[str, Scalar]) -> tuple[Fact, ...]:
    """`num_workers: 0 -> 2`, or only the new value where the old one is not known; what stays is left out."""
    return tuple(
        Fact(words.plain(axis, words.NAME_LIMIT), _step(axis, value, before))
        for axis, value in change.items()
        if axis not in before or axes.key(before[axis]) != axes.key(value)
    )


def _step(axis: str, value: Scalar, before: Mapping[str, Scalar]) -> Text:
    new = format_scalar(value)
    return words.name(f"{format_scalar(before[axis])} \u2192 {new}" if axis in before else new)


def _snippets(found: Recommendation) -> tuple[Snippet, ...]:
    texts = (("Python", found.snippet), ("YAML", found.snippet_yaml))
    return tuple(Snippet(language, words.clean(text)) for language, text in texts if text)
