"""Inside one trial: that of a profile, or the median trial of the selected configuration of a sweep."""

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
from loaderbench.report.sections.step import sample, step
from loaderbench.report.sections.waits import slow, slowest, waits
from loaderbench.report.view import View, representative, trials_of, why

_WORKERS = "Worker time breakdown"
_SLOWEST = 3  # samples that a terminal shows
_STATES = (
    ("on a CPU", "1", "running"),
    ("waiting for a CPU", "3", "ready to run; all available CPUs busy"),
    ("blocked", tables.REST, "waiting for a disk, a lock or the main process"),
)
_COLUMNS = (Column("State"), Column("Share", numeric=True), Column("Meaning", prose=True))


@dataclass(frozen=True)
class _Reading:
    """One field of the workers' states: how it is called, read and written, and what it counts."""

    label: str
    field: str
    write: Callable[[float], Value]
    of: str = ""

    def fact(self, states: WorkerStates) -> Fact | None:
        """The value, or why it is missing; `None` where no reason was recorded."""
        found, reason = getattr(states, self.field), states.not_measured.get(self.field)
        if found is None:
            return Fact(self.label, numbers.missing(reason)) if reason else None
        said = self.write(found).text
        return Fact(self.label, Text(f"{said} {self.of}".rstrip()))


_READINGS = (
    _Reading("Page cache hits", "page_cache_hit_share", numbers.share, "of bytes read"),
    _Reading("Major page faults", "major_faults_per_s", numbers.quantity, "per second (from disk)"),
    _Reading("Minor page faults", "minor_faults_per_s", numbers.quantity, "per second (from memory)"),
    _Reading("Threads per worker", "threads_per_worker", lambda threads: numbers.quantity(threads, digits=2)),
    _Reading("Other worker threads", "other_threads_cpu_share", numbers.share, "of a CPU per worker"),
    _Reading("Memory (PSS)", "pss_bytes", numbers.memory, "for all workers; shared pages counted once"),
)


def sections(view: View) -> tuple[Section, ...]:
    """Those of a profile's trial, or of the configuration that is shown at first."""
    trial = view.profile
    if trial is not None:
        return of_trial(trial) if trial.status == "completed" else ()
    found = () if view.shown is None else of_configuration(view, view.shown)
    return found or (Section(id="inside", title="", of_choice=True),)  # a placeholder for those of another choice


def of_configuration(view: View, number: int) -> tuple[Section, ...]:
    """Sections about the median traced trial; none where no trial was traced."""
    found = view.run.configurations[number]
    trials = trials_of(found, view.trials)
    traced = representative(trial for trial in trials if trial.status == "completed" and trial.stages)
    if traced is None:
        return ()
    known, label = role(view, found), words.configuration(found.config).text
    return of_trial(traced, words.sentence(f"From trial {traced.id}{f' ({known})' if known else ''}: {label}"))


def role(view: View, found: Configuration) -> str:
    """What the configuration is to the run; empty for one among many."""
    return _best_or_baseline(view, found) or ("tied with the best" if view.mark(found) else "")


def _best_or_baseline(view: View, found: Configuration) -> str | None:
    run = view.run
    baseline = axes.same(found.config, run.baseline.config)
    if view.is_best(found):
        return "best config, also the baseline" if baseline else "best config"
    if baseline:
        return "baseline"
    return "fastest estimate" if run.best is None and found.rank == 1 else None


def of_trial(trial: Trial, subject: Text | None = None) -> tuple[Section, ...]:
    """Everything known about it, and why the rest is unknown; what was not looked for is left out.

    `subject` says which of many trials it is; of these a terminal shows lines of code alone, of the only trial of a run
    all of it.
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
        _step_and_sample(tuple(filter(_says_something, first)), subject),
        _section("workers", "Workers", states, _states_at_a_glance(trial, states)),
        _section("waits", "Data wait", waits(trial)),
        stacks.lines(trial),
        _section("slow", "Slow samples", times, _slowest_at_a_glance(trial, times)),
    ]
    drawn = [section for section in found if section]
    return tuple(
        replace(section, glance=()) if subject and section.id != stacks.LINES else section for section in drawn
    )


def _says_something(part: Breakdown) -> bool:
    """Values, or the reason why there are none."""
    return part.missing is None or bool(part.missing.detail)


def _same_reason(parts: Sequence[Breakdown]) -> list[Text]:
    """One reason, given once for all parts that share it."""
    titles = " and ".join(f"\u201c{part.title}\u201d" for part in parts)
    return [Text(f"{titles}: not measured, for the same reason.")] if parts else []


def _step_and_sample(parts: tuple[Breakdown, ...], subject: Text | None) -> Section | None:
    """In one row."""
    if not parts:
        return None
    said = (Paragraph(subject, "small"),) if subject else ()
    columns = Columns(tuple((Heading(part.title), part) for part in parts))
    glance = tuple(found for part in parts if (found := _first(part)))
    return _of_choice("inside", "Step time breakdown", "Step", (*said, columns), glance)


def _section(id_: str, label: str, part: Breakdown | None, glance: Glance | None = None) -> Section | None:
    if part is None or not _says_something(part):
        return None
    section = _of_choice(id_, part.title, label, (part,), (glance,) if glance else ())
    return replace(section, narrow=True, only_verbose=True)


def _of_choice(id_: str, title: str, label: str, blocks: tuple[Block, ...], glance: tuple[Glance, ...]) -> Section:
    return Section(id=id_, title=title, label=label, blocks=blocks, glance=glance, in_markdown=True, of_choice=True)


def _first(part: Breakdown | None, label: str = "") -> Glance | None:
    """Its first table, or why it has none."""
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
    """The main threads of all workers over the steady state."""
    found = trial.workers
    lengths = [found.on_cpu_share, found.run_queue_share, found.blocked_share] if found else []
    if found is None or sum(lengths) <= 0:
        return Breakdown(title=_WORKERS, missing=numbers.missing(why(trial, "workers")))
    parts = tables.shares(lengths)
    names, tones = [name for name, _, _ in _STATES], [tone for _, tone, _ in _STATES]
    rows = tuple(
        Row((Text(name), share, Text(meaning)), tone=tone)
        for (name, tone, meaning), share in zip(_STATES, tables.percentages(parts), strict=True)
    )
    facts = [reading.fact(found) for reading in _READINGS]
    return Breakdown(
        title=_WORKERS,
        segments=tables.segments(names, parts, tones),
        tables=(Table(_caption(found), _COLUMNS, rows),),
        facts=tuple(fact for fact in facts if fact),
    )


def _caption(states: WorkerStates) -> str:
    if states.count is None:
        return "Main threads of all workers"
    return "Main thread of 1 worker" if states.count == 1 else f"Main threads of {states.count:,} workers"
