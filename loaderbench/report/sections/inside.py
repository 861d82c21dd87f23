"""Inside one trial: a profile's trial, or the median trial of the selected configuration of a sweep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from loaderbench.diagnosis.wording import in_main_process, states_in_words
from loaderbench.records import Configuration, Trial, WorkerStates
from loaderbench.report import axes, numbers, tables, words
from loaderbench.report.model import (
    Block,
    Breakdown,
    Column,
    Columns,
    Fact,
    Glance,
    Heading,
    Paragraph,
    Row,
    Section,
    Table,
    Text,
    Value,
)
from loaderbench.report.sections import stacks
from loaderbench.report.sections.step import STEP_TIME, sample, step
from loaderbench.report.sections.waits import slow, slowest, waits, waits_label
from loaderbench.report.view import View, representative, trials_of, why

_WORKERS = "Worker time breakdown"
_SLOWEST = 3  # samples shown in a terminal
_STATES = (
    ("on a CPU", "1", "running"),
    ("waiting for a CPU", "3", "ready to run; all available CPUs busy"),
    ("blocked", tables.REST, "waiting for a disk, a lock or the main process"),
)
_COLUMNS = (Column("State"), Column("Share", numeric=True), Column("Meaning", prose=True))


@dataclass(frozen=True)
class _Reading:
    """One field of the workers' states: its label, name and format, and what it counts."""

    label: str
    field: str
    write: Callable[[float], Value]
    of: str = ""
    only_some: bool = False  # none of it is usual, and not shown

    def fact(self, states: WorkerStates) -> Fact | None:
        """The value, or why it is missing; `None` if no reason was recorded."""
        value, reason = getattr(states, self.field), states.not_measured.get(self.field)
        if self.only_some and not value:
            return None
        if value is None:
            return Fact(self.label, numbers.missing(reason)) if reason else None
        text = self.write(value).text
        return Fact(self.label, Text(f"{text} {self.of}".rstrip()))


_READINGS = (
    _Reading("Page cache hits", "page_cache_hit_share", numbers.share, "of bytes read"),
    _Reading("Major page faults", "major_faults_per_s", numbers.quantity, "per second (from disk)"),
    _Reading("Minor page faults", "minor_faults_per_s", numbers.quantity, "per second (from memory)"),
    _Reading("Threads per worker", "threads_per_worker", lambda threads: numbers.quantity(threads, digits=2)),
    _Reading("Other worker threads", "other_threads_cpu_share", numbers.share, "of a CPU per worker"),
    _Reading("Sending batches", "sending_cpu_share", numbers.share, "of a CPU per worker; part of other threads", True),
    _Reading("Memory (PSS)", "pss_bytes", numbers.memory, "for all workers; shared pages counted once"),
    _Reading("Memory in swap", "swapped_bytes", numbers.memory, "of all workers", only_some=True),
)


def sections(view: View) -> tuple[Section, ...]:
    """Sections about a profile's trial, or about the initially selected configuration."""
    trial = view.profile
    if trial is not None:
        return of_trial(trial) if trial.status == "completed" else ()
    shown = () if view.shown is None else of_configuration(view, view.shown)
    return shown or (Section(id="inside", title="", of_choice=True),)  # a placeholder for another choice


def of_configuration(view: View, number: int) -> tuple[Section, ...]:
    """Sections about the median traced trial; empty if no trial was traced."""
    configuration = view.run.configurations[number]
    trials = trials_of(configuration, view.trials)
    traced = representative(trial for trial in trials if trial.status == "completed" and trial.stages)
    if traced is None:
        return ()
    known, label = role(view, configuration), words.configuration(configuration.config).text
    traced = replace(traced, consumer=traced.consumer or view.run.consumer)
    return of_trial(traced, words.sentence(f"From trial {traced.id}{f' ({known})' if known else ''}: {label}"))


def role(view: View, configuration: Configuration) -> str:
    """The configuration's role in the run; empty if it has none."""
    return _best_or_baseline(view, configuration) or ("tied with the best" if view.mark(configuration) else "")


def _best_or_baseline(view: View, configuration: Configuration) -> str | None:
    run = view.run
    baseline = axes.same(configuration.config, run.baseline.config)
    if view.is_best(configuration):
        return "best config, also the baseline" if baseline else "best config"
    if baseline:
        return "baseline"
    return "fastest estimate" if run.best is None and configuration.rank == 1 else None


def of_trial(trial: Trial, subject: Text | None = None) -> tuple[Section, ...]:
    """All that is known about a trial, and why the rest is unknown. Measurements that were not requested are left out.

    `subject` says which of many trials it is. For these, a terminal shows only lines of code; for the only trial of a
    run, it shows everything.
    """
    if trial.is_from_outside:
        workers = _workers(trial)
        seen = (
            stacks.stages(trial),
            stacks.lines(trial),
            _section("workers", "Workers", workers, _states_at_a_glance(trial, workers)),
        )
        return tuple(section for section in seen if section)
    inner, *others = sample(trial), _workers(trial), slow(trial)
    unmeasured = [part for part in others if part.missing and inner.missing and part.missing.text == inner.missing.text]
    states, times = (part if part not in unmeasured else None for part in others)
    first = (step(trial), replace(inner, notes=(*inner.notes, *_same_reason(unmeasured))))
    found = [
        _step_and_sample(tuple(filter(_has_content, first)), subject),
        _section("workers", "Workers", states, _states_at_a_glance(trial, states)),
        _section("waits", waits_label(trial), waits(trial)),
        stacks.lines(trial),
        _section("slow", "Slow samples", times, _slowest_at_a_glance(trial, times)),
    ]
    drawn = [section for section in found if section]
    return tuple(
        replace(section, glance=()) if subject and section.id != stacks.LINES else section for section in drawn
    )


def _has_content(part: Breakdown) -> bool:
    """Whether the part has values, or a reason why there are none."""
    return part.missing is None or bool(part.missing.detail)


def _same_reason(parts: Sequence[Breakdown]) -> list[Text]:
    """One note for all parts that are missing for the same reason."""
    titles = " and ".join(f"\u201c{part.title}\u201d" for part in parts)
    return [Text(f"{titles}: not measured, for the same reason.")] if parts else []


def _step_and_sample(parts: tuple[Breakdown, ...], subject: Text | None) -> Section | None:
    """The breakdowns of step and sample, side by side, or the only one that there is."""
    if not parts:
        return None
    what = "Step" if any(part.title == STEP_TIME for part in parts) else "Sample"
    intro = (Paragraph(subject, "small"),) if subject else ()
    columns = Columns(tuple((Heading(part.title), part) for part in parts))
    glance = tuple(found for part in parts if (found := _first(part)))
    return _of_choice("inside", f"{what} time breakdown", what, (*intro, columns), glance)


def _section(id_: str, label: str, part: Breakdown | None, glance: Glance | None = None) -> Section | None:
    if part is None or not _has_content(part):
        return None
    section = _of_choice(id_, part.title, label, (part,), (glance,) if glance else ())
    return replace(section, narrow=True, only_verbose=True)


def _of_choice(id_: str, title: str, label: str, blocks: tuple[Block, ...], glance: tuple[Glance, ...]) -> Section:
    return Section(id=id_, title=title, label=label, blocks=blocks, glance=glance, in_markdown=True, of_choice=True)


def _first(part: Breakdown | None, label: str = "") -> Glance | None:
    """The part's first table, or why it has none."""
    if part is None or part.missing is not None:
        return Fact(label or part.title, part.missing) if part and part.missing else None
    return part.tables[0] if part.tables else None


def _states_at_a_glance(trial: Trial, part: Breakdown | None) -> Glance | None:
    return Fact("Workers", Text(states_in_words(trial.workers))) if trial.workers else _first(part, "Workers")


def _slowest_at_a_glance(trial: Trial, part: Breakdown | None) -> Glance | None:
    times = trial.sample_times
    if times and times.slowest:
        return slowest(times, _SLOWEST, workers=not in_main_process(trial))
    return _first(part)


def _workers(trial: Trial) -> Breakdown:
    """How the main threads of all workers spent the steady state."""
    states = trial.workers
    lengths = [states.on_cpu_share, states.run_queue_share, states.blocked_share] if states else []
    if states is None or sum(lengths) <= 0:
        return Breakdown(title=_WORKERS, missing=numbers.missing(why(trial, "workers")))
    parts = tables.shares(lengths)
    names, tones = [name for name, _, _ in _STATES], [tone for _, tone, _ in _STATES]
    rows = tuple(
        Row((Text(name), share, Text(meaning)), tone=tone)
        for (name, tone, meaning), share in zip(_STATES, tables.percentages(parts), strict=True)
    )
    facts = [reading.fact(states) for reading in _READINGS]
    return Breakdown(
        title=_WORKERS,
        segments=tables.segments(names, parts, tones),
        tables=(Table(_caption(states), _COLUMNS, rows),),
        facts=tuple(fact for fact in facts if fact),
    )


def _caption(states: WorkerStates) -> str:
    if states.count is None:
        return "Main threads of all workers"
    return "Main thread of 1 worker" if states.count == 1 else f"Main threads of {states.count:,} workers"
