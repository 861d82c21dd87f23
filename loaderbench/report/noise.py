"""How still the machine was, as charts: rounds beside each other, data waits per batch, and one fixed piece of work."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from loaderbench.records import Readings, RunRecord, Trial
from loaderbench.report import axes, numbers
from loaderbench.report.drift import drift
from loaderbench.report.parts import Column, Row, Table, Text, Value
from loaderbench.report.parts_charts import Box, BoxesChart, NoiseCharts, RoundsChart
from loaderbench.report.representative import by_interest, trials_of
from loaderbench.report.strips import LARGEST

_MOST = 12  # configurations: what one screen holds
_FEWEST_WAITS = 20  # batches, below which quartiles say little
_WHISKER = 1.5  # of the distance of the quartiles (Tukey 1977)


def noise_charts(run: RunRecord, read: Readings) -> NoiseCharts | None:
    """What there is to show; `None` where that is nothing."""
    by_id = {trial.id: trial for trial in run.sweep if trial.status == "completed"}
    shown = [(axes.label(run, c.config), own) for c in by_interest(run)[:_MOST] if (own := trials_of(c, by_id))]
    left = len(run.configurations) - _MOST
    some = f" The {_MOST} best of {len(run.configurations):,} configurations are drawn." if left > 0 else ""
    found = NoiseCharts(_rounds(shown, some), _waits(shown, read, some), drift(run))
    return found if any((found.rounds, found.waits, found.drift)) else None


Own = Sequence[tuple[Text, Sequence[Trial]]]


def _rounds(shown: Own, some: str) -> RoundsChart | None:
    rates = [(label, [rate for t in own if (rate := t.samples_per_s) and _is_rate(rate)]) for label, own in shown]
    several = [(label, found) for label, found in rates if len(found) > 1]
    if not several:
        return None
    names = ("Lowest, samples/s", "Highest, samples/s", "Rounds", "Highest over lowest")
    columns = (Column("Configuration"), *(Column(name, numeric=True) for name in names))
    return RoundsChart(
        tuple(label.text for label, _ in several),
        tuple(_percent(found) for _, found in several),
        "Each dot is one round, a process of its own: how far its samples/s lie from the mean of its configuration."
        + some,
        Table("How far rounds lie apart", columns, tuple(Row((label, *_extremes(found))) for label, found in several)),
    )


def _is_rate(value: float) -> bool:
    """A saved run may hold any number."""
    return 0 < value < math.inf


def _percent(rates: Sequence[float]) -> tuple[float, ...]:
    """How far each lies from their geometric mean, in per cent."""
    mean = math.exp(math.fsum(map(math.log, rates)) / len(rates))
    return tuple(round((rate / mean - 1) * 100, 2) for rate in rates)


def _extremes(rates: Sequence[float]) -> Iterator[Value]:
    yield numbers.quantity(min(rates))
    yield numbers.quantity(max(rates))
    yield numbers.whole(len(rates))
    yield numbers.quantity(max(rates) / min(rates), numbers.TIMES)


def _waits(shown: Own, read: Readings, some: str) -> BoxesChart | None:
    found = [(label, _waits_ms(own, read)) for label, own in shown]
    told = [(label, len(waits), _box(label.text, waits)) for label, waits in found if len(waits) >= _FEWEST_WAITS]
    if not told:
        return None
    names = ("Batches", "Lower quartile, ms", "Median, ms", "Upper quartile, ms")
    columns = (Column("Configuration"), *(Column(name, numeric=True) for name in names))
    rows = (
        Row((label, numbers.whole(many), *(numbers.quantity(x) for x in (box.q1, box.median, box.q3))))
        for label, many, box in told
    )
    return BoxesChart(
        tuple(box for *_, box in told),
        "Boxes hold the middle half of the batches, whiskers reach to the last within 1.5 boxes; what lies farther is "
        f"on the timeline.{some}",
        Table("Data wait per batch, over all rounds", columns, tuple(rows)),
    )


def _waits_ms(trials: Sequence[Trial], read: Readings) -> np.ndarray:
    """The data waits of all batches that were read, of shape (batches,)."""
    found = [np.array(read.of(trial.id)["data_wait_s"][1]) for trial in trials if "data_wait_s" in read.of(trial.id)]
    waits = np.concatenate(found) if found else np.zeros(0)
    return waits[np.abs(waits) < LARGEST] * 1e3


def _box(label: str, waits: np.ndarray) -> Box:
    q1, median, q3 = (float(x) for x in np.quantile(waits, (0.25, 0.5, 0.75)))
    reach = _WHISKER * (q3 - q1)
    within = waits[(waits >= q1 - reach) & (waits <= q3 + reach)]
    return Box(label, *(float(f"{x:.4g}") for x in (within.min(), q1, median, q3, within.max())))
