"""The verdict and its figures: the baseline beside the best, and the ceiling above both."""

from __future__ import annotations

from collections.abc import Sequence

from loaderbench.records import Ceiling, Config, Configuration, GpuUse, RunRecord
from loaderbench.report import axes, numbers, words
from loaderbench.report.parts import Bar, BarKind, Fact, KeyFigure, Text, Value, VerdictPart
from loaderbench.report.readings import CPU, GPU, GPU_MEMORY, SAMPLES, WAIT, Metric

_BOUNDS = {
    "input": "input (the consumer waits for data)",
    "compute": "compute (the loader keeps up)",
    "transfer": "transfer (host to device)",
    "unknown": "unknown",
}


def verdict(run: RunRecord) -> VerdictPart:
    """All that stands in the verdict's box."""
    best = find(run, run.best.config) if run.best else None
    baseline = find(run, run.baseline.config) if run.baseline else None
    same = best is not None and baseline is not None and axes.same(best.config, baseline.config)
    alone = len(run.configurations) == 1
    return VerdictPart(
        headline=words.sentence(run.verdict.headline),
        cause=cause(run),
        evidence=tuple(words.sentence(text) for text in run.verdict.evidence),
        against=tuple(words.sentence(text) for text in run.verdict.against),
        confidence=f"{run.verdict.confidence} confidence",
        title=_title(alone, same),
        best_label="Measured" if alone else "Best",
        best=words.configuration(run.best.config) if run.best else None,
        baseline=words.configuration(run.baseline.config) if run.baseline and not same else None,
        why_best=words.sentence(run.best.why_this_one) if run.best else None,
        why_baseline=words.sentence(run.baseline.why_this_one) if run.baseline and not same else None,
        figures=_figures(run, best, None if same else baseline),
        bars=bars(_levels(run, same), run.ceiling),
        ceiling=ceiling(run.ceiling) if run.ceiling else None,
    )


def _title(alone: bool, same: bool) -> str:
    if alone:
        return "The configuration measured"
    return "The baseline is already the best" if same else "From the baseline to the best"


def find(run: RunRecord, config: Config) -> Configuration | None:
    """The configuration of the sweep with these values."""
    return next((c for c in run.configurations if axes.same(c.config, config)), None)


def cause(run: RunRecord) -> tuple[Fact, ...]:
    """What bounds it, at which stage, and what limits that."""
    found = run.verdict
    facts = [Fact("Bound", Text(_BOUNDS.get(found.bound, found.bound)))]
    if found.stage:
        facts.append(Fact("Stage", words.name(found.stage)))
    if found.limit:
        facts.append(Fact("Limit", words.name(found.limit)))
    return tuple(facts)


def _figures(run: RunRecord, best: Configuration | None, before: Configuration | None) -> tuple[KeyFigure, ...]:
    if best is None:
        return ()
    return tuple(
        KeyFigure(metric.label, read(run, metric, best), read(run, metric, before) if before else None, metric.hint)
        for metric in (SAMPLES, WAIT, GPU, GPU_MEMORY, CPU)
    )


def read(run: RunRecord, metric: Metric, configuration: Configuration) -> Value:
    """A metric of one configuration; memory of an accelerator with how much of it there is."""
    value = metric.read(configuration, run.environment)
    if metric is not GPU_MEMORY or value.missing:
        return value
    total = _gpu_memory_total(run, configuration)
    return value if total is None else Value(
        f"{value.text} of {numbers.memory(total).text}",
        main=value.main,
        detail=f"of {numbers.memory(total).text}",
        sort=value.sort,
    )  # fmt: skip


def _gpu_memory_total(run: RunRecord, configuration: Configuration) -> int | None:
    """The memory of the device whose use was the largest: that is the one the figure speaks of."""
    used = [gpu for t in run.sweep if t.id in configuration.trials for gpu in t.gpus]
    largest = max((g for g in used if g.memory_used_bytes is not None), key=_used, default=None)
    return largest.memory_total_bytes if largest else None


def _used(gpu: GpuUse) -> int:
    return gpu.memory_used_bytes or 0


def _levels(run: RunRecord, same: bool) -> list[tuple[BarKind, Value]]:
    """What the baseline and the best reach, as far as they are two."""
    if run.best is None:
        return []
    levels: list[tuple[BarKind, Value]] = [("best", numbers.interval(run.best.samples_per_s))]
    if run.baseline and run.baseline.samples_per_s and not same:
        levels.insert(0, ("baseline", numbers.interval(run.baseline.samples_per_s)))
    return levels


def bars(levels: Sequence[tuple[BarKind, Value]], ceiling: Ceiling | None) -> tuple[Bar, ...]:
    """The levels and the ceiling as lengths; nothing where there is nothing to compare."""
    if not levels:
        return ()
    above: list[tuple[BarKind, Value]] = [("ceiling", numbers.quantity(ceiling.samples_per_s))] if ceiling else []
    found = [*levels, *above]
    longest = max(value.sort or 0 for _, value in found)
    if len(found) == 1 or longest <= 0:
        return ()
    return tuple(Bar(kind, value.text, round((value.sort or 0) / longest, 4)) for kind, value in found)


def ceiling(found: Ceiling) -> Text:
    """The level and what is left to win."""
    measured = found.samples_per_s_interval
    level = numbers.interval(measured).text if measured else numbers.quantity(found.samples_per_s).text
    headspace = numbers.percent(found.headspace * 100).text
    return words.sentence(
        f"Ceiling: {level} samples/s with loading made free ({found.basis}). "
        f"Headspace: {headspace} of the time per batch could be won."
    )
