"""How waits and steps are distributed over the batches, and what lies outside the steady state."""

from __future__ import annotations

from loaderbench.records import Trial
from loaderbench.report import numbers, spreads
from loaderbench.report.parts import Fact, Text
from loaderbench.report.parts_inside import Breakdown
from loaderbench.report.trials import why

TITLE = "Waits and epochs"
_FIELDS = (("data wait", "data_wait"), ("own step", "step"))


def waits(trial: Trial) -> Breakdown:
    """Quantiles over batches; the first batch and the epoch boundaries apart from them."""
    found = [(label, spread) for label, field in _FIELDS if (spread := getattr(trial, field))]
    gone = {label: why(trial, field) for label, field in _FIELDS if getattr(trial, field) is None}
    if not found and trial.epochs is None:
        reason = next((reason for reason in gone.values() if reason), why(trial, "epochs"))
        return Breakdown(id="waits", title=TITLE, missing=numbers.missing(reason))
    caption = "How long the loop waited and how long it worked for a batch"
    return Breakdown(
        id="waits",
        title=TITLE,
        tables=(spreads.table(caption, "batch", "batches", found),) if found else (),
        facts=tuple(_facts(trial)),
        notes=(
            *([spreads.ACCURACY] if found else []),
            *(_gone(label, reason) for label, reason in gone.items()),
        ),
    )


def _gone(label: str, reason: str | None) -> Text:
    return Text(f"{label.capitalize()}: {numbers.missing(reason).text}.")


def _facts(trial: Trial) -> list[Fact]:
    facts = []
    first = why(trial, "time_to_first_batch_s")
    if trial.time_to_first_batch_s is not None or first:
        facts.append(Fact("First batch", numbers.duration(trial.time_to_first_batch_s, first)))
    return facts + _epochs(trial)


def _epochs(trial: Trial) -> list[Fact]:
    """A boundary is counted from asking for more to the next epoch's first batch."""
    epochs = trial.epochs
    if epochs is None:
        reason = why(trial, "epochs")
        return [Fact("Epoch boundary", numbers.missing(reason))] if reason else []
    begun = Fact("Epochs begun", Text(f"{epochs.begun:,}"))
    if epochs.boundary_s is None:
        return [begun, Fact("Epoch boundary", numbers.missing(epochs.not_measured.get("boundary_s")))]
    mean, longest = numbers.duration(epochs.boundary_s), numbers.duration(epochs.boundary_max_s)
    several = not longest.missing and longest.text != mean.text
    said = f"{mean.text} on average, {longest.text} at most" if several else mean.text
    return [begun, Fact("Epoch boundary", Text(said))]
