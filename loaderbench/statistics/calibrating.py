"""The step time of a run's consumer by batch size, without its data wait."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean, linear_regression, median

from loaderbench.consumers import consumer_kind
from loaderbench.errors import UsageError
from loaderbench.loaders import prefetch_of
from loaderbench.records import CALIBRATION_FORMAT, Calibration, RunRecord, StepTime, Trial
from loaderbench.statistics.intervals import rate_interval


def calibration_of(run: RunRecord) -> Calibration:
    """Calibrate step times from the sweep. Raises `UsageError` for a run that trained nothing.

    The step time is the time per batch minus its data wait. For each batch size, the configuration with the fastest
    step counts, because others copy from pageable memory or compete for the CPU.
    """
    if not consumer_kind(run.consumer).consumes or consumer_kind(run.consumer).capped:
        raise UsageError(f"consumer {run.consumer!r} trains nothing; measure with consumer.kind: model or target")
    trained = [trial for trial in run.sweep if trial.computed_in or run.consumer != "model"]
    if not trained:
        raise UsageError("no trial of this run trained on its batches; measure with consumer.kind: target")
    steps = tuple(_steps(run, trained))
    if not steps:
        raise UsageError("no completed trial of this run has a batch size and a data wait")
    fixed_s, s_per_sample = _line(steps)
    section = run.section("consumer")
    trains = run.consumer == "model"
    return Calibration(
        format=CALIBRATION_FORMAT,
        run=run.name,
        device=_device(run, section.get("device") if trains else None),
        model=section.get("model") if trains else None,
        precision=_precision(run) or section.get("precision") or "mixed" if trains else None,
        steps=steps,
        fixed_s=fixed_s,
        s_per_sample=s_per_sample,
    )


def _precision(run: RunRecord) -> str | None:
    """The data type of the step's computation; `None` in runs that did not record it."""
    return next((trial.computed_in for trial in run.sweep if trial.computed_in), None)


def _steps(run: RunRecord, trials: Sequence[Trial]) -> list[StepTime]:
    by_size: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for trial in trials:
        size, step_s = prefetch_of(run.loader, trial.config).batch_size, _step_s(trial)
        if size and step_s:
            by_size[size][str(trial.config)].append(step_s)
    fastest = {size: min(found.values(), key=median) for size, found in sorted(by_size.items())}
    return [StepTime(batch_size=n, step_s=rate_interval(each), trials=len(each)) for n, each in fastest.items()]


def _step_s(trial: Trial) -> float | None:
    one = trial.of_one_process
    if trial.status != "completed" or not one.batches or one.steady_s is None or one.data_wait_share is None:
        return None
    return one.steady_s / one.batches * (1 - one.data_wait_share)


def _line(steps: Sequence[StepTime]) -> tuple[float, float]:
    """Fixed seconds and seconds per sample, by least squares over the batch sizes.

    If the intercept is negative, or there is only one batch size, all time is per sample. If the slope is not positive,
    all time is fixed: launching kernels limits such a step.
    """
    sizes, times_s = [step.batch_size for step in steps], [step.step_s.est for step in steps]
    if len(steps) > 1:
        slope, fixed_s = linear_regression(sizes, times_s)
        if slope <= 0:
            return fmean(times_s), 0.0
        if fixed_s >= 0:
            return fixed_s, slope
    return 0.0, sum(times_s) / sum(sizes)


def _device(run: RunRecord, asked: str | None) -> str:
    used = {use.index for trial in run.sweep for use in trial.gpus}
    names = [gpu.name for gpu in run.environment.gpus if gpu.index in used]
    return names[0] if names else (asked or "cpu")
