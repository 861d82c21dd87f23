"""What the report of a profile says in its own words: its head, its verdict's figures, its cost and its method."""

from __future__ import annotations

from dataclasses import replace

from loaderbench.records import RunRecord, Trial
from loaderbench.report import closing, header, numbers, readings, words
from loaderbench.report.own_cost import own_cost
from loaderbench.report.parts import Fact, KeyFigure, State, Term, Value, VerdictPart
from loaderbench.report.verdict import bars, cause, ceiling, read

_FIRST_BATCH = replace(
    readings.FIRST_BATCH,
    value=lambda c, why: numbers.duration(c.time_to_first_batch_s.est if c.time_to_first_batch_s else None, why),
)
_METRICS = (readings.SAMPLES, readings.WAIT, _FIRST_BATCH, readings.CPU, readings.GPU, readings.GPU_MEMORY)
_SWEEPS_ONLY = {"configuration", "trial", "round", "ties", "demand", "ceiling", "interference", "contention"}

GLOSSARY = (
    *(term for term in closing.GLOSSARY if term.word not in _SWEEPS_ONLY),
    Term("step", "From one call of next() to the next: the data wait, and what your loop does with the batch."),
    Term("epoch boundary", "From asking for more at an epoch\u2019s end to the first batch of the next."),
    Term("ceiling", "Samples/s of your own steps with no data wait between them."),
)


def trial_of(run: RunRecord) -> Trial:
    """The one trial of a profile; an empty one where nothing was even begun."""
    return run.sweep[0] if run.sweep else Trial(id="", role="profile", config={}, round=1, status="failed")


def state(run: RunRecord) -> State:
    """How many batches were measured, and whether the loop came to its end."""
    trial = trial_of(run)
    if trial.status != "completed":
        return State("bad", "nothing was measured")
    counted = numbers.count(trial.batches or 0, "batch", "batches")
    if run.complete:
        return State("ok", f"complete: {counted}")
    return State("warn", f"partial: {counted}", "The loop did not come to its end; what it did until then is below.")


def facts(run: RunRecord) -> tuple[Fact, ...]:
    """The line of facts below the profile's name: what it iterates stands first."""
    accelerator, allotted, dataset, *others = header.facts(run)
    return (Fact("Loader", dataset.value), accelerator, allotted, *others)


def verdict(run: RunRecord) -> VerdictPart:
    """The finding with the figures of the one configuration there is."""
    measured = next((c for c in run.configurations if c.samples_per_s), None)
    found = readings.with_data(_METRICS, (measured,)) if measured else ()
    level = _alone(numbers.interval(measured.samples_per_s)) if measured else None
    return VerdictPart(
        headline=words.sentence(run.verdict.headline),
        cause=cause(run),
        evidence=tuple(words.sentence(text) for text in run.verdict.evidence),
        against=tuple(words.sentence(text) for text in run.verdict.against),
        confidence=f"{run.verdict.confidence} confidence",
        title="Your loop as it ran",
        best_label="Measured",
        best=words.configuration(measured.config) if measured and measured.config else None,
        baseline=None,
        why_best=None,
        why_baseline=None,
        figures=tuple(KeyFigure(m.label, _alone(read(run, m, measured)), None, m.hint) for m in found if measured),
        bars=bars([("measured", level)] if level else [], run.ceiling),
        ceiling=ceiling(run.ceiling) if run.ceiling else None,
    )


def _alone(value: Value) -> Value:
    """Without `n = 1`: a profile is one process by nature, and its method says so once."""
    return replace(value, text=value.main, detail="") if value.detail == numbers.ONE_ROUND else value


def cost(run: RunRecord) -> tuple[Fact, ...]:
    """What measuring took from the loop, or why that is not known."""
    if run.overhead is not None:
        return own_cost(run.overhead)
    reason = words.reason_of("overhead", run.not_measured)
    return (Fact("Own cost", numbers.missing(reason)),) if reason else ()


def method(run: RunRecord) -> tuple[str, ...]:
    """How it was measured, in the numbers of this profile."""
    trial = trial_of(run)
    warmup = "The first batches" if trial.warmup_batches is None else _first_batches(trial.warmup_batches)
    traced = (
        "The stages inside the workers were timed through the worker_init_fn of a private view of your loader, "
        "so that nothing of yours and nothing of torch was changed."
    )
    device = (
        " Where your loop used a CUDA device, two events on its stream did that, so that data wait is what the device "
        "stood still for."
    )
    return (
        "A clock ran around next() of your own loop, in your own process: what lies inside is data wait, what lies "
        f"between is your step.{device if trial.gpus else ''} Nothing was synchronised.",
        f"{warmup} and the boundaries between epochs are kept apart: samples/s, data wait share and all means belong "
        "to the steady state.",
        "It was one process, so that there is no interval; profile it again to see how far two runs lie apart.",
        *([traced] if trial.stages else []),
    )


def _first_batches(count: int) -> str:
    if count == 0:
        return "No batch was left out as warm-up,"
    return "The first batch" if count == 1 else f"The first {count:,} batches"
