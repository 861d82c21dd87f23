"""The pipeline: each part drawn as wide as the samples/s that it allows, with the bottleneck marked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from loaderbench.consumers import consumer_kind
from loaderbench.diagnosis.pipeline import COPY, REST, PartName, Pipeline, PipelinePart, describe_pipeline
from loaderbench.diagnosis.wording import stage_name
from loaderbench.records import Limit, config_label, varying
from loaderbench.records.words import IPC, STAGE_NAMES, count
from loaderbench.report import numbers, tables, words
from loaderbench.report.model import Block, Column, Fact, Row, Section, Table, Text, Value
from loaderbench.report.pipe import Piece, draw_pipe
from loaderbench.report.view import View

_MOST_STAGES = 5  # stages shown of a part; the others are added up
_IN_TEXT = 3  # stages in a line of text
_WITHIN = {name: STAGE_NAMES[name].removeprefix("the ") for name in ("startup", "stragglers", "main_process")}
_LEFT_OUT = {
    "storage": "storage",
    "cpus": "CPUs",
    "ipc": IPC,
    "copy": STAGE_NAMES["transfer"],
    "step": "training step",
}
_COLUMNS = (Column("Part"), Column("Max samples/s", numeric=True), Column("Details", prose=True))

_FADING = "Faded edges: beyond the scale"
_WAITS = "Throughput limits do not include waits for a CPU, a lock or another batch."
_CLOSE = "Another part is narrower. The verdict also considers idle CPUs and waits."
_IN_TURN = "Without workers, loading and training take turns. Throughput is lower than both."
_EXCEEDS = "Throughput exceeds the lowest throughput limit. The traced times do not explain it."
_LAZY = "{} also reads files. Its blocked time counts as reading."
_WHY: dict[Limit | None, str] = {
    "lock": "A lock lets one thread work at a time. Throughput limits assume parallel work.",
    "order": "Finished batches wait for a slow one ahead of them. Throughput limits do not include this wait.",
    "startup": "Each epoch starts with a wait for its first batch. Throughput limits apply to the time after it.",
    "quota": "A CPU quota or an affinity mask holds the loader back. Its throughput limit assumes all available CPUs.",
    "oversubscription": "Threads wait for a CPU. Throughput limits do not include this wait.",
    "neighbors": "Other programs hold CPUs. This throughput limit assumes all available CPUs.",
    "memory": "Page faults delay this stage. Throughput limits include only part of that time.",
}
"""Why a limit of this kind is not visible as the narrowest part."""

_HANDING_OVER = "Worker-to-main IPC delays batches. Its throughput limit counts only CPU time of the main process."
_ONE_THREAD = "Work in the main process is serialized. Its throughput limit counts only its CPU time."
_OUTSIDE = "Most of the time is spent outside `__getitem__` and collate. The throughput limit does not include it."

Mark = Literal["", "bottleneck", "narrowest"]
"""The part that the verdict names is the `bottleneck`.

If it names none, the part with the lowest limit is `narrowest`.
"""


@dataclass(frozen=True)
class Share:
    """A stage within a part. `tone` is its color; the verdict's stage is `marked`."""

    said: str
    title: str | None
    tone: str
    start: float
    share: float
    marked: bool


@dataclass(frozen=True, kw_only=True)
class Part:
    """One part of the picture. `tag` describes its `mark` in words, and `note` what its rate includes.

    `why` says why a bottleneck is not the narrowest part, or passes less than it allows. `limits` is true if the part's
    rate limits throughput.
    """

    name: str
    rate: Value
    mark: Mark
    tag: str
    note: Text | None
    why: str
    limits: bool
    stages: tuple[Share, ...]
    piece: Piece


@dataclass(frozen=True, kw_only=True)
class Picture(Block):
    """The pipe. `marks` are the positions of the target, drawn across all parts.

    `healthy` is true if the loader keeps up. `fading` explains parts that are wider than the scale.
    """

    template = "pipeline.html"
    subject: Text
    throughput: str
    target: str
    parts: tuple[Part, ...]
    marks: tuple[float, float] | None
    fading: str
    notes: tuple[Text, ...]
    left_out: str
    healthy: bool


def section(view: View) -> Section | None:
    """The pipeline of the verdict's configuration; `None` if nothing was measured."""
    pipeline = describe_pipeline(view.run)
    if pipeline is None:
        return None
    picture = _picture(pipeline, _subject(view, pipeline), _target_name(view))
    return Section(
        id="pipeline",
        title="Pipeline",
        label="Pipeline",
        blocks=(picture,),
        glance=(_table(picture), *_remarks(picture)),
        in_markdown=True,
        only_verbose=True,
    )


def _subject(view: View, pipeline: Pipeline) -> Text:
    """The configuration by the axes that vary; empty for a profile, which has only one."""
    config = varying(pipeline.config, view.run.plan.axes)
    if view.profile or not config:
        return Text("")
    return words.outside(
        f"{'Best config' if view.run.best else 'Fastest estimate'} {config_label(config)}", words.LABEL_LIMIT
    )


def _picture(pipeline: Pipeline, subject: Text, target_name: str) -> Picture:
    names = [part.name for part in pipeline.parts]
    neck = names.index(pipeline.bottleneck) if pipeline.bottleneck in names else None
    pipe = draw_pipe([part.samples_per_s for part in pipeline.parts], pipeline.delivered, pipeline.target, neck)
    return Picture(
        subject=subject,
        throughput=_rate(pipeline.delivered).text,
        target=_target(pipeline, target_name, shown=pipe.marks is not None),
        parts=tuple(_part(pipeline, part, piece) for part, piece in zip(pipeline.parts, pipe.pieces, strict=True)),
        marks=pipe.marks,
        fading=_FADING if any(piece.beyond for piece in pipe.pieces) else "",
        notes=tuple(map(Text, _notes(pipeline))),
        left_out=words.plain(", ".join(f"{_LEFT_OUT[name]} ({why})" for name, why in pipeline.left_out.items()), 600),
        healthy=pipeline.limit == "none",
    )


def _part(pipeline: Pipeline, part: PipelinePart, piece: Piece) -> Part:
    mark = _mark(pipeline, part.name)
    why = _why_not_narrowest(pipeline) if mark == "bottleneck" else ""
    return Part(
        name=_name(pipeline, part.name),
        rate=_rate(part.samples_per_s, part.reason),
        mark=mark,
        tag=_tag(pipeline, part.name),
        note=None if why and part.name == "ipc" else _note(pipeline, part),
        why=why,
        limits=mark == "bottleneck" and pipeline.limits_explain_it,
        stages=_stages(part, pipeline.stage),
        piece=piece,
    )


def _name(pipeline: Pipeline, name: PartName) -> str:
    loader = "Main process, loading" if pipeline.is_loader else "Loader"
    names: dict[PartName, str] = {
        "storage": "Storage",
        "workers": count(pipeline.workers, "worker") if pipeline.workers else loader,
        "cpus": f"{pipeline.cpus:g} CPU{'' if pipeline.cpus == 1 else 's'}",
        "ipc": "Worker-to-main IPC",
        "step": "Emulated GPU" if pipeline.given else "Training step",
    }
    return names[name]


def _rate(rate: float | None, reason: str | None = None) -> Value:
    """Samples/s in the format of the verdict's evidence: a rate of 10 or more as an integer."""
    return numbers.whole(rate) if rate is not None and 10 <= rate < math.inf else numbers.quantity(rate, reason=reason)


def _mark(pipeline: Pipeline, name: PartName) -> Mark:
    if pipeline.bottleneck is None:
        return "narrowest" if name == pipeline.narrowest else ""
    return "bottleneck" if name == pipeline.bottleneck else ""


def _tag(pipeline: Pipeline, name: PartName) -> str:
    """The mark, with the stage if the part's name does not imply it."""
    mark = _mark(pipeline, name)
    within = _stage_within(pipeline, name) if mark == "bottleneck" else None
    return f"{mark}: {within}" if within else mark


def _stage_within(pipeline: Pipeline, name: PartName) -> str | None:
    stage = pipeline.stage
    if name == "step":
        return "copy" if stage == COPY else None
    return _WITHIN.get(stage or "") or (words.stage(stage).text if stage and name == "workers" else None)


def _note(pipeline: Pipeline, part: PipelinePart) -> Text | None:
    """Why the rate is not known, or what it includes."""
    if part.samples_per_s is None:
        return words.sentence(part.reason or "")
    notes: dict[PartName, str] = {
        "storage": "if workers only read" if pipeline.workers else "if the process only reads",
        "cpus": "shared by all processes",
        "ipc": "estimated from CPU time of the main process",
        "step": "target" if pipeline.given else "",
    }
    return Text(notes[part.name]) if notes.get(part.name) else None


def _stages(part: PipelinePart, marked: str | None) -> tuple[Share, ...]:
    """The largest stages, in the order of a sample, and the sum of the others."""
    ranked = sorted(part.stages, key=lambda one: -one.share)
    few = ranked if len(ranked) <= _MOST_STAGES else ranked[: _MOST_STAGES - 1]
    shown = [one for one in part.stages if one in few]
    names = [_stage_name(one.stage, part.name) for one in shown]
    marks = [one.stage == marked for one in shown]
    lengths = [one.share for one in shown]
    tones = tables.tones(lengths)
    if len(shown) < len(part.stages):
        names, marks, tones = [*names, Text("other")], [*marks, False], [*tones, tables.REST]
        lengths = [*lengths, 1 - sum(lengths)]
    starts = [sum(lengths[:i]) for i in range(len(lengths))]
    return tuple(_share(*each) for each in zip(names, lengths, starts, tones, marks, strict=True))


def _stage_name(stage: str, part: PartName) -> Text:
    """The name of a stage. Stages of the step are loaderbench's; others can be the user's."""
    return (
        Text({COPY: "host-to-device copy", REST: "rest of the step"}[stage]) if part == "step" else words.stage(stage)
    )


def _share(name: Text, length: float, start: float, tone: str, marked: bool) -> Share:
    percentage = "<1%" if 0 < length < 0.005 else f"{length * 100:.0f}%"
    share, begins = round(length, 4), round(start, 4)
    return Share(f"{name.text} {percentage}", name.title, tone, begins, share, marked)


def _target_name(view: View) -> str:
    kind = consumer_kind(view.run.consumer)
    if kind.capped:
        return "Target"
    return "Loop without data waits" if kind.of_loop else "Training step alone"


def _target(pipeline: Pipeline, name: str, *, shown: bool) -> str:
    """The rate drawn across, with a note if it is too large to be drawn."""
    if pipeline.target is None:
        return ""
    return f"{name}: {_rate(pipeline.target).text} samples/s{'' if shown else ' (beyond the scale)'}"


def _notes(pipeline: Pipeline) -> list[str]:
    """Notes about the complete pipeline that the widths do not show."""
    notes = [_LAZY.format(words.capitalised(stage_name(pipeline.reads_inside)))] if pipeline.reads_inside else []
    if pipeline.exceeds_limits:
        return [*notes, _EXCEEDS]
    return [*notes, _why(pipeline)] if pipeline.bottleneck is None and not pipeline.limits_explain_it else notes


def _why_not_narrowest(pipeline: Pipeline) -> str:
    if pipeline.bottleneck == "storage":
        return (
            f"{'Workers wait' if pipeline.workers else 'The main process waits'} for storage, which lowers both values."
        )
    return "" if pipeline.limits_explain_it or pipeline.exceeds_limits else _why(pipeline)


def _why(pipeline: Pipeline) -> str:
    """Why the marked part is not the narrowest, or passes less than it allows."""
    if pipeline.bottleneck == "ipc":
        return _ONE_THREAD if pipeline.stage == "main_process" else _HANDING_OVER
    if pipeline.bottleneck == "workers" and pipeline.stage == "main_process":
        return _OUTSIDE
    if pipeline.in_turn and pipeline.limit not in _WHY:
        return _IN_TURN
    return _WHY.get(pipeline.limit, _WAITS if pipeline.slower_than_limits else _CLOSE)


def _table(picture: Picture) -> Table:
    """The picture as a table for a terminal."""
    rows = [Row((Text(part.name), part.rate, Text(_details(part))), mark=part.mark) for part in picture.parts]
    measured = Value(picture.throughput, main=picture.throughput)
    rows.append(Row((Text("Throughput"), measured, Text("measured")), mark="total"))
    of = f" ({picture.subject.text})" if picture.subject.text else ""
    return Table(f"Pipeline, samples/s{of}", _COLUMNS, tuple(rows))


def _remarks(picture: Picture) -> list[Fact]:
    """The notes below the picture, and why its bottleneck is not its narrowest part."""
    texts = [*(part.why for part in picture.parts if part.why), *(note.text for note in picture.notes)]
    left_out = [Fact("Not shown", Text(picture.left_out))] if picture.left_out else []
    return [*(Fact("Note", Text(text)) for text in texts), *left_out]


def _details(part: Part) -> str:
    """The details of a part on one line of a terminal, with only its largest stages."""
    largest = sorted(part.stages, key=lambda one: -one.share)
    shares = [one.said for one in largest[:_IN_TEXT]] + (["..."] if len(largest) > _IN_TEXT else [])
    note = part.note.text if part.note else ""
    return "; ".join(filter(None, (part.tag, note, ", ".join(shares))))
