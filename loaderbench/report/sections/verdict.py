"""The verdict and its key figures: baseline, best and ceiling, or a profile's only loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from loaderbench.diagnosis.wording import WALL_TIME, stage_name
from loaderbench.records import About, Ceiling, Configuration, Evidence, GpuUse, RunRecord, Verdict
from loaderbench.records.metrics import Metric
from loaderbench.report import axes, head, metrics, numbers, words
from loaderbench.report.model import Block, Fact, Section, Text, Value
from loaderbench.report.rerun_command import command_to_resume
from loaderbench.report.sections.recommendations import command_for, outcome
from loaderbench.report.view import View, find
from loaderbench.statistics.faster_arguments import NONE_FASTER

_REACHED: tuple[About, ...] = ("rate", "target")
_IN_HEADLINE: About = "failure"

_OF_PROFILE = (metrics.SAMPLES, metrics.WAIT, metrics.FIRST_BATCH, metrics.CPU, metrics.GPU, metrics.GPU_MEMORY)

BarKind = Literal["baseline", "best", "measured", "ceiling"]


@dataclass(frozen=True)
class Reason(Fact):
    """A line of evidence for the cause. With `only_verbose`, a terminal shows it only with `-v`."""

    only_verbose: bool = False


@dataclass(frozen=True)
class NextStep:
    """The first `fix` with its gain, if there is one, and what to `do`, with the `command` to type, if there is one.

    `has_code` is true if the fix has code to paste. `then` is the step after it.
    """

    fix: Text | None
    do: str
    command: str | None = None
    has_code: bool = False
    then: str | None = None

    def said(self, where_code_is: str) -> str:
        """The step in words, with the place of the code, which depends on the form of the report."""
        code = f" ({where_code_is})" if self.has_code else ""
        return f"{self.do}{code}{f', then {self.then}' if self.then else ''}"


@dataclass(frozen=True, kw_only=True)
class VerdictBlock(Block):
    """The finding that explains the run.

    `headline` is its first line, `reached` the measured and target rates, and `why` the evidence for the cause.
    `doubts` are reasons to distrust the run. `notes` do not affect the finding; a terminal always shows those in
    `setup_notes`, which ask for a change.
    """

    template = "finding.html"
    headline: Text
    reached: tuple[Text, ...]
    why: tuple[Reason, ...]
    against: tuple[Text, ...]
    doubts: tuple[Text, ...]
    notes: tuple[Text, ...]
    setup_notes: tuple[Text, ...] = ()
    next_step: NextStep | None = None


@dataclass(frozen=True)
class KeyFigure:
    """One quantity of the baseline and of the best. `before` is `None` if both are the same configuration."""

    label: str
    value: Value
    before: Value | None
    hint: str


@dataclass(frozen=True)
class Bar:
    """A bar of the small comparison in samples/s. `share` is its length, 0 to 1."""

    kind: BarKind
    value: str
    share: float


@dataclass(frozen=True, kw_only=True)
class KeyFigures(Block):
    """The figures of the best configuration, and of the baseline if it is another one."""

    template = "key_figures.html"
    figures: tuple[KeyFigure, ...]
    bars: tuple[Bar, ...]
    ceiling: Text | None
    best_label: str
    best: Text | None
    baseline: Text | None = None
    why_best: Text | None = None
    why_baseline: Text | None = None


def finding(view: View) -> Section:
    """What bounds the run, and the confidence."""
    verdict = view.run.verdict
    lines = _lines(verdict)
    block = VerdictBlock(
        headline=words.sentence(str(verdict)),
        reached=(
            *_loader(view),
            *(words.sentence(str(line)) for line in lines if line.about in _REACHED),
            *_confidence_reasons(verdict),
        ),
        why=tuple(_reason(line, verdict) for line in lines if line.about not in (*_REACHED, _IN_HEADLINE)),
        against=tuple(words.sentence(text) for text in verdict.against),
        doubts=head.warnings(view.run),
        notes=head.notes(view.run),
        setup_notes=tuple(words.sentence(text) for text in view.run.setup_notes),
        next_step=None if view.run.kind == "ab" else _next_step(view.run, view.folder),
    )
    return Section(id="verdict", title="Verdict", label="Verdict", blocks=(block,), look="verdict")


def _next_step(run: RunRecord, folder: Path | None) -> NextStep | None:
    """The next step: paste a measured fix, or measure any other one first, by a command or in the user's own loop.

    If the run did not end or other ranks are unknown, measuring the rest comes first.
    """
    if run.is_of_script:
        return None if run.in_progress else _next_step_in_script(run)
    if run.kind == "sweep" and run.in_progress:
        return NextStep(None, "If the run has stopped, resume it", command_to_resume(run, folder))
    if run.only_rank is not None:
        return NextStep(None, "Record all ranks", run.only_rank.command)
    first = next((found for found in run.recommendations if found.status == "open"), None)
    if first is None:
        keep = "Keep the loader. Speed up the training step to raise throughput"
        return NextStep(None, keep) if run.verdict.bound == "compute" else None
    unknown = "" if first.gain else "gain not measured"
    fix = words.sentence(f"{first.title}: {'; '.join(filter(None, (unknown, outcome(first, run, ' samples/s'))))}")
    if first.basis != "measured" and (command := command_for(first, run)):
        return NextStep(fix, "Measure the first fix", command)
    again = (
        "profile the loop again" if run.kind == "profile" else "run the command again, with a new --out if it has one"
    )
    then = None if first.basis == "measured" else again
    return NextStep(fix, "Apply the first fix", has_code=first.snippet is not None, then=then)


def _next_step_in_script(run: RunRecord) -> NextStep:
    """The arguments to use in the script, as `tune` prints them."""
    found = run.tuned
    if found is None:
        is_decided = run.not_measured.get("tuned") == NONE_FASTER
        return NextStep(None, "Keep the current arguments" if is_decided else "Tune again with a longer budget")
    gain = numbers.gain(found.gain.est, found.gain.lo, found.gain.hi, "vs current arguments").text
    named = ", ".join(f"{name}={value!r}" for name, value in {**found.change, **found.worker_options}.items())
    in_workers = "" if not found.worker_options else " (code of the worker options under Fixes)"
    return NextStep(None, f"Set {named} in the script: {gain}{in_workers}")


def _confidence_reasons(verdict: Verdict) -> tuple[Text, ...]:
    """`Low confidence: only one round was measured; 2 warnings`."""
    if not verdict.confidence_reasons:
        return ()
    return (words.sentence(f"{verdict.confidence.capitalize()} confidence: {'; '.join(verdict.confidence_reasons)}"),)


def _loader(view: View) -> tuple[Text, ...]:
    """The loader of a profile, with its arguments. A sweep names its configuration instead."""
    return (words.sentence(f"Loader: {view.run.dataset.description}"),) if view.profile else ()


def _lines(verdict: Verdict) -> tuple[Evidence, ...]:
    """The evidence. Runs of earlier versions have complete lines without parts."""
    return verdict.evidence_parts or tuple(Evidence("cause", "", line) for line in verdict.evidence)


def _reason(line: Evidence, verdict: Verdict) -> Reason:
    """A line of evidence. Wall times are in a table of the terminal's output, and limits need `-v`."""
    label, figures = words.plain(line.label, words.NAME_LIMIT), line.figures
    of_wall_time = line.about == "inside" and line.label == WALL_TIME
    if of_wall_time and verdict.read_inside and figures.startswith(stage_name(verdict.read_inside)):
        figures = f"{figures}; {stage_name(verdict.read_inside)} includes reading files"
    return Reason(label, words.sentence(figures), only_verbose=of_wall_time or line.about == "limits")


def figures(view: View) -> Section | None:
    """The baseline and the best; `None` if nothing was measured."""
    shown = _of_profile(view.run) if view.profile else _of_sweep(view.run)
    if shown is None:
        return None
    title, block = shown
    return Section(id="key-figures", title=title, blocks=(block,), look="figures")


def _of_sweep(run: RunRecord) -> tuple[str, KeyFigures] | None:
    best = find(run, run.best.config) if run.best else None
    if run.best is None or best is None:
        return None
    before = find(run, run.baseline.config)
    same = before is not None and axes.same(best.config, before.config)
    alone = len(run.configurations) == 1
    compared = None if same else run.baseline
    levels: list[tuple[BarKind, Value]] = [("best", numbers.interval(run.best.samples_per_s))]
    if compared and compared.samples_per_s:
        levels.insert(0, ("baseline", numbers.interval(compared.samples_per_s)))
    return _title(alone, same), KeyFigures(
        figures=tuple(
            KeyFigure(m.label, _read(run, m, best), _read(run, m, before) if before and not same else None, m.hint)
            for m in metrics.meant_in(run, metrics.KEY_FIGURES)
        ),
        bars=_bars(levels, run.ceiling),
        ceiling=words.sentence(f"Ceiling: {ceiling(run.ceiling)}") if run.ceiling else None,
        best_label="Measured" if alone else "Best",
        best=words.configuration(run.best.config),
        baseline=words.configuration(compared.config) if compared else None,
        why_best=words.sentence(run.best.why_this_one),
        why_baseline=words.sentence(compared.why_this_one) if compared else None,
    )


def _title(alone: bool, same: bool) -> str:
    if alone:
        return "Measured config"
    return "The baseline is the best config" if same else "Baseline vs best config"


def _of_profile(run: RunRecord) -> tuple[str, KeyFigures] | None:
    measured = next((c for c in run.configurations if c.samples_per_s), None)
    if measured is None:
        return None
    shown = metrics.with_data(_OF_PROFILE, (measured,), run)
    level = _without_rounds(numbers.interval(measured.samples_per_s))
    return "Your loop", KeyFigures(
        figures=tuple(KeyFigure(m.label, _of_one_process(run, m, measured), None, m.hint) for m in shown),
        bars=_bars([("measured", level)], run.ceiling),
        ceiling=words.sentence(f"Ceiling: {ceiling(run.ceiling)}") if run.ceiling else None,
        best_label="Measured",
        best=words.configuration(measured.config) if measured.config else None,
    )


def _of_one_process(run: RunRecord, metric: Metric, measured: Configuration) -> Value:
    """A metric of a single process. A time is written as a duration, because it has no interval."""
    value = metric.of_configuration(measured)
    if metric.unit == "s" and value is not None:
        return numbers.duration(value if isinstance(value, int | float) else value.est)
    return _without_rounds(_read(run, metric, measured))


def _without_rounds(value: Value) -> Value:
    """The value without `n = 1`. A profile is always one process, which its method states once."""
    return replace(value, text=value.main, detail="") if value.detail == numbers.ONE_ROUND else value


def _read(run: RunRecord, metric: Metric, configuration: Configuration) -> Value:
    """A metric of one configuration. GPU memory is followed by the device's total."""
    value = metrics.of_configuration(metric, configuration, run.environment)
    total = _gpu_memory_total(run, configuration) if metric is metrics.GPU_MEMORY and not value.missing else None
    if total is None:
        return value
    of = f"of {numbers.memory(total).text}"
    return Value(f"{value.text} {of}", main=value.main, detail=of, sort=value.sort)


def _gpu_memory_total(run: RunRecord, configuration: Configuration) -> int | None:
    """The total memory of the device with the largest use, which is the one in the figure."""
    used = [gpu for t in run.sweep if t.id in configuration.trials for gpu in t.gpus]
    largest = max((g for g in used if g.memory_used_bytes is not None), key=_used, default=None)
    return largest.memory_total_bytes if largest else None


def _used(gpu: GpuUse) -> int:
    return gpu.memory_used_bytes or 0


def _bars(levels: Sequence[tuple[BarKind, Value]], above: Ceiling | None) -> tuple[Bar, ...]:
    """The rates and the ceiling as bars; empty if there is nothing to compare."""
    top: list[tuple[BarKind, Value]] = [("ceiling", numbers.quantity(above.samples_per_s))] if above else []
    all_levels = [*levels, *top]
    longest = max(value.sort or 0 for _, value in all_levels)
    if len(all_levels) == 1 or longest <= 0:
        return ()
    return tuple(Bar(kind, value.text, round((value.sort or 0) / longest, 4)) for kind, value in all_levels)


def ceiling(found: Ceiling) -> str:
    """The ceiling in samples/s, and the headroom."""
    measured = found.samples_per_s_interval
    level = numbers.interval(measured).text if measured else numbers.quantity(found.samples_per_s).text
    return (
        f"{level} samples/s if loading were free ({found.basis}). "
        f"Headroom: up to {numbers.share(found.headspace).text} less time per batch."
    )
