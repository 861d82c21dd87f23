"""Noise of the machine (spread over rounds, data wait, reference decode) and the overhead of measuring."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import datetime

import numpy as np

from loaderbench.records import Overhead, RunRecord, Trial, moment
from loaderbench.records.words import count
from loaderbench.report import axes, numbers, words
from loaderbench.report.model import (
    Block,
    Chart,
    Column,
    Fact,
    Facts,
    Heading,
    Row,
    Section,
    Table,
    Text,
    Value,
    data_table,
)
from loaderbench.report.sections import noise_charts
from loaderbench.report.sections.noise_charts import Box
from loaderbench.report.sections.timeline_panels import LARGEST, min_max
from loaderbench.report.view import IN_NEXT, View, by_interest, trials_of

_OVERHEAD = "Profiling overhead"
_AA_TEST = "A/A test"
_MOST = 12  # configurations that fit on one screen
_FEWEST_WAITS = 20  # batches; quartiles of fewer say little
_WHISKER = 1.5  # interquartile ranges (Tukey 1977)
_MOST_DECODES = 600  # points

Own = Sequence[tuple[Text, Sequence[Trial]]]
Drawn = tuple[Chart, Table] | None


def section(view: View) -> Section | None:
    """Noise and overhead, or for a profile only the overhead; `None` if nothing is known."""
    if view.profile:
        known = view.profile.status == "completed" and not view.profile.is_from_outside
        return _of_profile(view) if known else None
    facts, charts = (*_facts(view.run), *_without_quartiles(view)), _charts(view)
    blocks = (Facts(facts), *charts)
    title = "Noise and overhead"
    return Section(id="noise", title=title, label="Noise", blocks=blocks) if facts or charts else None


def _of_profile(view: View) -> Section | None:
    run = view.run
    reason = words.reason_of("overhead", run.not_measured)
    unknown = [Fact(_OVERHEAD, numbers.missing(reason))] if reason else []
    facts = _overhead(run.overhead) if run.overhead else tuple(unknown)
    if not facts:
        return None
    glance = Fact(_OVERHEAD, Text("; ".join(fact.value.text for fact in facts)))
    blocks = (Facts(facts),)
    return Section(
        id="noise",
        title=_OVERHEAD,
        label="Overhead",
        blocks=blocks,
        glance=(glance,),
        in_markdown=True,
        only_verbose=True,
    )


def _facts(run: RunRecord) -> tuple[Fact, ...]:
    found, cost = run.noise, run.overhead
    facts = []
    if found.aa_difference is not None:
        ratio = numbers.gain(found.aa_difference.est, found.aa_difference.lo, found.aa_difference.hi)
        facts.append(Fact(_AA_TEST, Text(f"{ratio.text} between identical configs")))
    elif "aa_difference" in found.not_measured:
        facts.append(Fact(_AA_TEST, numbers.missing(found.not_measured["aa_difference"])))
    facts += _spread(run)
    facts += _overhead(cost) if cost else []
    if cost and cost.monitor_cpu_share is not None:
        facts.append(Fact("Monitors", Text(f"{numbers.share(cost.monitor_cpu_share).text} of one CPU")))
    return tuple(facts)


def _spread(run: RunRecord) -> list[Fact]:
    """The spread of the reference decode: one fixed JPEG, decoded before and after each trial."""
    spread = run.noise.reference_decode_spread
    if spread is None:
        reason = run.noise.not_measured.get("reference_decode_spread")
        return [Fact("Reference decode", numbers.missing(reason))] if reason else []
    ratio = numbers.quantity(spread, numbers.TIMES).text
    return [Fact("Reference decode", Text(f"time varied by {ratio} (one JPEG, before and after each trial)"))]


def _without_quartiles(view: View) -> list[Fact]:
    thinned = sum(map(view.lacks_waits, view.run.sweep))
    trials = count(thinned, "trial")
    reason = f"not available for {trials}: only the longest wait of each group of batches was saved"
    return [Fact(f"{_waits_label(view)} quartiles", Text(reason))] if thinned else []


def _overhead(overhead: Overhead) -> tuple[Fact, ...]:
    """The recorder per batch, tracing per sample, and both as a share of wall time, as far as known."""
    share = "" if overhead.share_of_wall is None else f"{numbers.share(overhead.share_of_wall).text} of wall time"
    traced = overhead.tracing_per_sample_s
    facts = []
    if overhead.per_batch_s is not None:
        alone = f", {share}" if share and traced is None else ""
        facts.append(Fact("Recorder", Text(f"{numbers.duration(overhead.per_batch_s).text} per batch{alone}")))
    if traced is not None:
        facts.append(Fact("Tracing", Text(f"{numbers.duration(traced).text} per sample, from on/off pairs")))
        facts += [Fact("Total", Text(f"at most {share}"))] if share else []
    return tuple(facts)


def _charts(view: View) -> tuple[Block, ...]:
    """The charts with data, each with its title and its numbers."""
    run = view.run
    by_id = {name: trial for name, trial in view.trials.items() if trial.status == "completed"}
    shown = [(axes.label(run, c.config), own) for c in by_interest(run)[:_MOST] if (own := trials_of(c, by_id))]
    left = len(run.configurations) - _MOST
    some = f" Best {_MOST} of {len(run.configurations):,} configs shown." if left > 0 else ""
    found = (_rounds(shown, some), _waits(shown, view, some), _drift(run))
    return tuple(
        block
        for drawn in found
        if drawn is not None
        for block in (Heading(drawn[0].label), drawn[0], data_table(drawn[1]))
    )


def _rounds(shown: Own, some: str) -> Drawn:
    rates = [(label, [rate for t in own if (rate := t.samples_per_s) and _is_rate(rate)]) for label, own in shown]
    several = [(label, pairs) for label, pairs in rates if len(pairs) > 1]
    if not several:
        return None
    names = ("Min, samples/s", "Max, samples/s", "Rounds", "Max / min")
    columns = (Column("Config"), *(Column(name, numeric=True) for name in names))
    chart = Chart(
        name="rounds",
        label="Spread over rounds",
        caption=f"One dot per round: deviation of its samples/s from the mean of the config.{some}",
        figures=(noise_charts.rounds([label.text for label, _ in several], [_percent(pairs) for _, pairs in several]),),
    )
    rows = tuple(Row((label, *_extremes(pairs))) for label, pairs in several)
    return chart, Table("Spread over rounds", columns, rows)


def _is_rate(value: float) -> bool:
    """Whether a rate is valid. A saved run can contain any number."""
    return 0 < value < math.inf


def _percent(rates: Sequence[float]) -> tuple[float, ...]:
    """The deviation of each rate from their geometric mean, in percent."""
    mean = math.exp(math.fsum(map(math.log, rates)) / len(rates))
    return tuple(round((rate / mean - 1) * 100, 2) for rate in rates)


def _extremes(rates: Sequence[float]) -> Iterator[Value]:
    yield numbers.quantity(min(rates))
    yield numbers.quantity(max(rates))
    yield numbers.whole(len(rates))
    yield numbers.quantity(max(rates) / min(rates), numbers.TIMES)


def _waits(shown: Own, view: View, some: str) -> Drawn:
    found = [(label, _waits_ms(own, view)) for label, own in shown]
    boxes = [(label, len(waits), _box(label.text, waits)) for label, waits in found if len(waits) >= _FEWEST_WAITS]
    if not boxes:
        return None
    label_of_waits, names = _waits_label(view), ("Batches", "p25, ms", "Median, ms", "p75, ms")
    columns = (Column("Config"), *(Column(name, numeric=True) for name in names))
    rows = (
        Row((label, numbers.whole(many), *(numbers.quantity(x) for x in (box.q1, box.median, box.q3))))
        for label, many, box in boxes
    )
    chart = Chart(
        name="waits",
        label=f"{label_of_waits} per batch",
        caption=f"Box: middle 50% of batches. Whiskers: 1.5{numbers.TIMES} the box. Outliers: see the timeline.{some}",
        figures=(noise_charts.boxes([box for *_, box in boxes], f"{label_of_waits.lower()} per batch"),),
    )
    return chart, Table(f"{label_of_waits} per batch, all rounds", columns, tuple(rows))


def _waits_label(view: View) -> str:
    return "Data wait" if view.has_data_wait else words.capitalised(IN_NEXT)


def _waits_ms(trials: Sequence[Trial], view: View) -> np.ndarray:
    """The waits of all batches, from trials that kept all of them, with shape (batches,)."""
    whole = [view.readings.of(trial.id) for trial in trials if not view.lacks_waits(trial)]
    arrays = [np.array(read["data_wait_s"][1]) for read in whole if "data_wait_s" in read]
    waits = np.concatenate(arrays) if arrays else np.zeros(0)
    return waits[np.abs(waits) < LARGEST] * 1e3


def _box(label: str, waits: np.ndarray) -> Box:
    q1, median, q3 = (float(x) for x in np.quantile(waits, (0.25, 0.5, 0.75)))
    reach = _WHISKER * (q3 - q1)
    within = waits[(waits >= q1 - reach) & (waits <= q3 + reach)]
    return Box(label, *(float(f"{x:.4g}") for x in (within.min(), q1, median, q3, within.max())))


def _drift(run: RunRecord) -> Drawn:
    """The reference decode of each trial, in order of time."""
    began = moment(run.started_at)
    decodes = sorted(_decodes(run, began)) if began else []
    if len({at for at, _ in decodes}) < 2:
        return None
    times = [ms for _, ms in decodes]
    minutes, drawn = min_max((np.array([at for at, _ in decodes]), np.array(times)), _MOST_DECODES)
    thinned = f" Downsampled to {len(drawn):,} of {len(times):,} points (min and max kept)."
    columns = tuple(Column(name, numeric=True) for name in ("Count", "Min, ms", "Median, ms", "Max, ms"))
    cells = (numbers.whole(len(times)), *(numbers.quantity(float(np.quantile(times, q))) for q in (0, 0.5, 1)))
    chart = Chart(
        name="drift",
        label="Machine drift",
        caption="Time to decode one JPEG, before and after each trial. On a stable machine it is constant."
        + (thinned if len(drawn) < len(times) else ""),
        figures=(
            noise_charts.drift(
                [round(at, 3) for at in minutes.tolist()], [float(f"{ms:.4g}") for ms in drawn.tolist()]
            ),
        ),
    )
    rows = (Row((Text("decode one JPEG"), *cells)),)
    return chart, Table("Reference decode time", (Column("Work"), *columns), rows)


def _decodes(run: RunRecord, began: datetime) -> Iterator[tuple[float, float]]:
    for trial in run.sweep:
        started = moment(trial.started_at or "")
        if started is None:
            continue
        at = (started - began).total_seconds()
        times = ((0.0, trial.reference_decode_before_s), (trial.duration_s or 0.0, trial.reference_decode_after_s))
        for after_s, decode_s in times:
            if decode_s and math.isfinite(decode_s):
                yield (at + after_s) / 60, decode_s * 1e3
